// The children of a lock as a queue: pure.  Whose turn it is says core/queue.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/zookeeper/names.hpp"
#include "core/queue.hpp"

namespace dlock::zookeeper {

/// The children that are in the queue, in its order.
std::vector<NodeName> queue_of(const std::vector<std::string>& children);

/// How many at the beginning of the queue hold the lock.
std::size_t count_holders(const std::vector<NodeName>& queue);

struct Decision {
  enum class Kind {
    granted,         // it holds the lock; in slots mode, once it has created the node of `slot`
    watch_node,      // until `node` is deleted or its record changes, as a grant changes it
    watch_children,  // until one of the nodes is deleted
    refused,         // `held` cannot be mixed with its claim
    gone,            // it is not among the children
  };
  Kind kind = Kind::gone;
  std::string node = {};
  unsigned slot = 0;  // 0: none is needed, or the client has one
  Claim held = {};
};

/// For the child `own`.  `has_slot`: the client has created the node of a slot already.
Decision decide(const std::vector<std::string>& children, std::string_view own, bool has_slot);

}  // namespace dlock::zookeeper
