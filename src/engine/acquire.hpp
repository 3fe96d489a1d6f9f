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
  /// Without leftovers, max_hold, min_hold, once and status_file.  argv has one element: the
  /// script's name in records and messages.
  RunSpec run;
  /// Keeps the locks while this process lives, an ancestor that dlock may signal.  None: leases of
  /// RunSpec::ttl, which are not renewed.
  std::optional<pid_t> keep_while;
};

/// Acquires all locks and calls `print` with them in the order of the keys.  If that returns false,
/// or the calling process is killed before that, the locks are released; with keep_while also if it
/// is killed before this returns.  Returns dlock's exit status: 0 if the locks stay held.  With
/// keep_while two processes stay behind, which have no descriptor of the caller but stderr and that
/// of the event log; and no pipe that the script has not.  They renew the leases until that process
/// has ended, and then release.  If a lock is lost (see RunSpec::on_lost), or one of the two is
/// killed, they end that process and all below it before others can acquire the lock.  The calling
/// process must be as run() says.
int acquire(const BackendEntry& entry, const Target& target, const AcquireSpec& spec,
            const std::function<bool(std::span<const Grant>)>& print);

}  // namespace dlock
