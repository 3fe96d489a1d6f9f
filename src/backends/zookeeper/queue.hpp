// Who of a lock's children holds it, and what one that does not has to wait for: no network.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/zookeeper/names.hpp"

namespace dlock::zookeeper {

/// The children that are in the queue, in its order.
std::vector<NodeName> queue_of(const std::vector<std::string>& children);

/// So many from its beginning hold the lock.
std::size_t count_holders(const std::vector<NodeName>& queue);

struct Decision {
  enum class Kind {
    held,
    watch_node,      // `node` is in the way: nothing can change for us before it does
    watch_children,  // any of the holders may make room
    conflict,        // the holders' mode cannot be mixed with ours
    gone,            // our node is not there
  };
  Kind kind = Kind::gone;
  std::string node;
  unsigned number = 0;  // held: of the slot, where it is to be taken first (decide_number)
};

/// For the child `own`, which asks for `mode` and `slots`.
Decision decide(const std::vector<NodeName>& queue, std::string_view own);

}  // namespace dlock::zookeeper
