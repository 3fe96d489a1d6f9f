// Exclusive: nobody is before us.  Shared: nobody who is not shared, too.  Slots: fewer than N, all
// of the same kind.  So the holders are always the first in the queue.
//
// One event for one waiter.  Whoever waits watches the last of those that must go before it can be
// its turn: exclusive the one before it, shared the nearest that is not shared.  With slots any of
// N holders can make room, so the first that waits watches the list, and each one behind it the one
// before.  The node of that one stays when its turn comes.  But a client that others may have
// listed as waiting writes its record anew when it acquires the lock, and that is an event, too. It
// does so when it has its number (slots.cpp), so that this is no news for whoever watches the list
// next.
#include "backends/zookeeper/queue.hpp"

#include <algorithm>

namespace dlock::zookeeper {
namespace {

// The server's counter is signed and goes on at -2147483648 after 2147483647.
std::int32_t distance(std::int32_t from, std::int32_t to) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(to) -
                                   static_cast<std::uint32_t>(from));
}

}  // namespace

std::vector<NodeName> queue_of(const std::vector<std::string>& children) {
  std::vector<NodeName> queue;
  for (const std::string& child : children) {
    if (auto node = parse_node(child)) queue.push_back(std::move(*node));
  }
  if (queue.empty()) return queue;
  // Measured from one of them: two by two they are in no order if somebody makes up numbers.
  const std::int32_t origin = queue.front().sequence;
  std::sort(queue.begin(), queue.end(), [&](const NodeName& a, const NodeName& b) {
    const auto from_a = distance(origin, a.sequence);
    const auto from_b = distance(origin, b.sequence);
    return from_a != from_b ? from_a < from_b : a.name < b.name;
  });
  return queue;
}

std::size_t count_holders(const std::vector<NodeName>& queue) {
  if (queue.empty()) return 0;
  const NodeName& first = queue.front();
  if (first.mode == Mode::exclusive) return 1;
  const std::size_t most =
      first.mode == Mode::shared ? queue.size() : std::min<std::size_t>(queue.size(), first.slots);
  std::size_t count = 1;
  while (count < most && queue[count].mode == first.mode && queue[count].slots == first.slots) {
    ++count;
  }
  return count;
}

Decision decide(const std::vector<NodeName>& queue, std::string_view own) {
  using Kind = Decision::Kind;
  const auto ours =
      std::find_if(queue.begin(), queue.end(), [&](const auto& node) { return node.name == own; });
  if (ours == queue.end()) return {Kind::gone, {}};
  const auto place = static_cast<std::size_t>(ours - queue.begin());
  const std::size_t holders = count_holders(queue);
  if (place < holders) return {Kind::held, {}};
  const NodeName& first = queue.front();
  if (!modes_mix(ours->mode, ours->slots, first.mode, first.slots)) return {Kind::conflict, {}};
  if (ours->mode == Mode::slots && place == holders) return {Kind::watch_children, {}};
  std::size_t in_way = place - 1;
  // The first of the queue is no reader if we are one that has to wait, or else one behind it is.
  while (ours->mode == Mode::shared && queue[in_way].mode == Mode::shared) --in_way;
  return {Kind::watch_node, queue[in_way].name};
}

}  // namespace dlock::zookeeper
