// Acquire, and leave: the locks outlive the call.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "engine/grant.hpp"
#include "engine/run.hpp"

namespace dlock {

struct AcquireSpec {
  /// What both commands have: keys to label, wait, ttl; kill_after and on_lost with keep_while.
  /// argv has one element: how the script is called in records and messages.  status_file, min_hold
  /// and max_hold have no meaning here.
  RunSpec run;
  /// Keeps the locks for as long as this process lives: an ancestor of this one that it may signal.
  /// None: leases of RunSpec::ttl, which nobody renews.
  std::optional<pid_t> keep_while;
};

/// Gets all locks and calls `print` with them in the order of the keys; if that returns false, or
/// the calling process is killed before this returns, they are given back.  Returns dlock's exit
/// status: 0 when they are left held.  With keep_while two processes stay behind, which have no
/// descriptor of the caller but stderr: they renew the leases until that process has ended, and
/// then release; if a lock is lost, or one of the two is killed, they end that process and what is
/// below it before others can have the lock.  The calling process must be as run() says.
int acquire(const BackendEntry& entry, const Target& target, const AcquireSpec& spec,
            const std::function<bool(std::span<const Grant>)>& print);

}  // namespace dlock
