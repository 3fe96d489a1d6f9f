// The numbers of a slots lock, by the names of its nodes: no network.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/zookeeper/queue.hpp"

namespace dlock::zookeeper {

/// The node, beside the queue, of the holder that has `number`: "slot-3".
std::string slot_node(unsigned number);

/// None for a child of a lock that is no such node.
std::optional<unsigned> number_of(std::string_view child);

/// As decide(), for a client of a slots lock that has no number yet: it holds the lock only once it
/// has created the node of Decision::number, which nobody had when the children were listed.  If
/// all numbers are taken, it has to watch the children.  `raced`: it has tried before, and another
/// client was faster.
Decision decide_number(const std::vector<std::string>& children, std::string_view own, bool raced);

}  // namespace dlock::zookeeper
