// Slots.  The holder of a slot has two nodes: one in the queue and one for the number of its slot.
//         A reader of the queue never takes the second for a member of it, since the name does not
//         end in ten digits: dlock and kazoo skip it.  Curator and the C recipe sort all children
//         by what follows their marker or the last `-`; "s" sorts after all digits, and so does
//         "3" after the zeros of a sequence.
// Free.   The first N of the queue are the holders, and usually N numbers are enough for them.  But
//         a holder whose node in the queue was deleted, as force-release does, keeps its number
//         until its command has ended.  So a client can be among the first N and find no number.
// Races.  When many clients come at once and all try the lowest number, N clients need N*N/2
//         requests.  So a client leaves a number to each holder before it that has none yet.
#include "backends/zookeeper/queue.hpp"

#include <algorithm>

namespace dlock::zookeeper {
namespace {

// The server's counter is signed and goes on at -2147483648 after 2147483647.
std::int32_t distance(std::int32_t from, std::int32_t to) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(to) -
                                   static_cast<std::uint32_t>(from));
}

std::vector<Queued> claims_of(const std::vector<NodeName>& queue) {
  std::vector<Queued> claims;
  for (const NodeName& node : queue) claims.push_back({node.claim});
  return claims;
}

// `place`: of a client in the queue.  0: all slots have a node.
unsigned slot_for(const std::vector<std::string>& children, std::size_t place, unsigned slots) {
  std::vector<unsigned> taken;
  for (const std::string& child : children) {
    if (const auto slot = slot_of(child); slot && *slot <= slots) taken.push_back(*slot);
  }
  return free_slot(taken, slots, place - std::min(place, taken.size()));
}

}  // namespace

std::vector<NodeName> queue_of(const std::vector<std::string>& children) {
  std::vector<NodeName> queue;
  for (const std::string& child : children) {
    if (auto node = parse_node(child)) queue.push_back(std::move(*node));
  }
  if (queue.empty()) return queue;
  // Measured from one of them.  Compared two by two, numbers that somebody made up have no order.
  const std::int32_t origin = queue.front().sequence;
  std::sort(queue.begin(), queue.end(), [&](const NodeName& a, const NodeName& b) {
    const auto from_a = distance(origin, a.sequence);
    const auto from_b = distance(origin, b.sequence);
    return from_a != from_b ? from_a < from_b : a.name < b.name;
  });
  return queue;
}

std::size_t count_holders(const std::vector<NodeName>& queue) {
  return dlock::count_holders(claims_of(queue));
}

Decision decide(const std::vector<std::string>& children, std::string_view own, bool has_slot) {
  using Kind = Decision::Kind;
  const auto queue = queue_of(children);
  const auto ours =
      std::find_if(queue.begin(), queue.end(), [&](const auto& node) { return node.name == own; });
  if (ours == queue.end()) return {};
  const auto place = static_cast<std::size_t>(ours - queue.begin());
  const Turn turn = turn_of(claims_of(queue), place);
  switch (turn.kind) {
    case Turn::Kind::wait_for_one:
      return {.kind = Kind::watch_node, .node = queue[turn.index].name};
    case Turn::Kind::wait_for_any:
      return {.kind = Kind::watch_children};
    case Turn::Kind::refused:
      return {.kind = Kind::refused, .held = queue.front().claim};
    case Turn::Kind::granted:
      break;
  }
  if (ours->claim.mode != Mode::slots || has_slot) return {.kind = Kind::granted};
  const unsigned slot = slot_for(children, place, ours->claim.slots);
  return {.kind = slot == 0 ? Kind::watch_children : Kind::granted, .slot = slot};
}

}  // namespace dlock::zookeeper
