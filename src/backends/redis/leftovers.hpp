// What attempts to get a lock, under ids that are used no more, may have left on servers, or may
// still come to leave there: entries in queues, and grants that nobody wants.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "backends/redis/cluster.hpp"
#include "backends/redis/round.hpp"
#include "core/backend.hpp"

namespace dlock::redis {

class Leftovers {
 public:
  /// Of `request` on this server; `outstanding` as in Traces, null: all was answered.  Of too many
  /// on one server the oldest is forgotten: it ends with its ttl, and in the queue it counts as
  /// dead.
  void add(const Request& request, unsigned node, std::shared_ptr<const Outstanding> outstanding);
  bool empty() const { return list_.empty(); }

  /// Asks the servers to take back what is not taken back yet, and waits for nobody.
  void ask_to_undo(Cluster& cluster);
  /// The same, and waits for those that are not known to be slow.  An error: of the only server.
  Result<void> undo(Cluster& cluster, Deadline deadline, Cancel cancel);

 private:
  struct Leftover {
    Request request;
    unsigned node = 0;
    std::shared_ptr<const Outstanding> outstanding;
    std::shared_ptr<std::atomic<bool>> undone = std::make_shared<std::atomic<bool>>(false);
  };
  static Result<Removal> remove(const Leftover& leftover, Node& node, Deadline deadline,
                                Cancel cancel);
  void forget_undone();

  std::vector<Leftover> list_;
};

}  // namespace dlock::redis
