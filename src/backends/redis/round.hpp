// One attempt to get the lock, driven over the network: the same for one server and for several.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/redis/cluster.hpp"
#include "core/backend.hpp"

namespace dlock::redis {

/// For each server: it was sent the request, and has not answered.
using Outstanding = std::vector<std::atomic<bool>>;

/// What an attempt that fails leaves behind.
struct Traces {
  /// The servers that may have something of it, or may still get it.
  std::vector<unsigned> in_doubt;
  /// Those of which nobody knows whether the request has come to them.
  std::shared_ptr<const Outstanding> outstanding;
  /// A request that names this id may be under way, or it is marked as given up: whatever is asked
  /// next needs another one.
  bool id_is_spent = false;
};

/// What is asked, and of whom.
struct Question {
  Request request;
  std::string record;       // of ours, without a fence
  unsigned head = 0;        // the server in whose queue we wait
  bool head_alone = false;  // first, and the others only if it has granted the lock
  bool meets = true;        // those whose votes are split elsewhere; else we wait for them
  Try how;                  // at the head; of the others we take what is free
  Traces& traces;
};

struct RoundResult {
  enum class Kind {
    held,     // by us
    refused,  // others hold it, or come first: `vote` is that of `head`, in whose queue to wait
    split,    // nobody holds it, since several asked at once: they meet at `head`
  };
  Kind kind = Kind::refused;
  bool other_list = false;    // somebody holds it by another list of servers
  bool lacks_number = false;  // split: of slots, none is free, or somebody else has just taken it
  Vote vote;                  // of `head`, if it answered
  unsigned head = 0;
  Agreed agreed;
  Deadline asked;
  std::shared_ptr<Outstanding> outstanding;  // held
};

/// Unless the lock is held now, what other servers than a single one have granted is undone.
/// Errc::unreachable when too few answered by `give_up`, denied, invalid (a server is listed twice,
/// or somebody holds the lock by another list of servers, if that is known before it is granted),
/// cancelled.
Result<RoundResult> ask_for_lock(Cluster& cluster, const Question& question, Deadline give_up,
                                 Cancel cancel);

/// For how long one of several servers is waited for.
Millis node_timeout(Millis ttl);
/// For how long a process that will not keep the lock waits for the servers that are slower than
/// the majority: also for those that have to be connected.
Millis straggler_timeout(Millis ttl);

/// Of a server that answers as the one of rank `twin`.
Error twin_error(const Cluster& cluster, unsigned node, unsigned twin);

/// "2 of 5 servers answered, 3 are needed: ...", with the errors of those that did not.  Of a
/// single server its error as it is.
Error too_few(unsigned needed, const std::vector<std::optional<Error>>& errors);

}  // namespace dlock::redis
