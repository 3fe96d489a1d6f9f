// Names.  Nothing that reads a queue takes the node of a number for a place in it, since its name
//         does not end in ten digits: dlock of any version and kazoo skip it.  Curator and the C
//         recipe sort all children by what follows their mark, or the last `-`; "s" comes after
//         all digits, as does "3" after the zeros of a sequence, so it is behind everybody.
// Free.   The first N of the queue are the holders.  Usually N numbers are enough for them.  But a
//         holder whose place in the queue was deleted, as force-release does, keeps its number
//         until its command has ended; so a client can be among the first N and find no number.
// Races.  When many clients come at once, all try the lowest number, and one is faster.  If the
//         others tried the next one together, and so on, N clients would need N*N/2 requests.  So
//         whoever has lost a race leaves a number to each holder before it that has none yet.
#include "backends/zookeeper/slots.hpp"

#include <algorithm>

#include "util/text.hpp"

namespace dlock::zookeeper {
namespace {

constexpr std::string_view kSlot = "slot-";

// The lowest number of 1..slots that is free, after `skipped` others that are, or else the last of
// them; 0 if there is none.
unsigned free_number(const std::vector<bool>& taken, std::size_t skipped) {
  unsigned found = 0;
  for (unsigned number = 1; number < taken.size(); ++number) {
    if (taken[number]) continue;
    found = number;
    if (skipped-- == 0) break;
  }
  return found;
}

}  // namespace

std::string slot_node(unsigned number) { return std::string(kSlot) + std::to_string(number); }

std::optional<unsigned> number_of(std::string_view child) {
  if (!child.starts_with(kSlot) || parse_node(child)) return std::nullopt;
  const auto number = util::parse_int(child.substr(kSlot.size()), 1, INT32_MAX);
  if (!number || slot_node(static_cast<unsigned>(*number)) != child) return std::nullopt;
  return static_cast<unsigned>(*number);
}

Decision decide_number(const std::vector<std::string>& children, std::string_view own, bool raced) {
  using Kind = Decision::Kind;
  const auto queue = queue_of(children);
  Decision decision = decide(queue, own);
  if (decision.kind != Kind::held) return decision;
  std::vector<bool> taken(std::size_t{queue.front().slots} + 1);
  std::size_t numbered = 0;
  for (const std::string& child : children) {
    const auto number = number_of(child);
    if (!number || *number >= taken.size()) continue;
    taken[*number] = true;
    ++numbered;
  }
  const auto ours =
      std::find_if(queue.begin(), queue.end(), [&](const auto& node) { return node.name == own; });
  const auto place = static_cast<std::size_t>(ours - queue.begin());
  decision.number = free_number(taken, raced && place > numbered ? place - numbered : 0);
  if (decision.number == 0) decision.kind = Kind::watch_children;
  return decision;
}

}  // namespace dlock::zookeeper
