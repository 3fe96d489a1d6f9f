#include "core/queue.hpp"

#include <algorithm>
#include <vector>

namespace dlock {

std::size_t count_holders(std::span<const Queued> queue) {
  if (queue.empty()) return 0;
  const Claim first = queue.front().claim;
  if (first.mode == Mode::exclusive) return 1;
  const std::size_t most =
      first.mode == Mode::shared ? queue.size() : std::min<std::size_t>(queue.size(), first.slots);
  std::size_t count = 1;
  while (count < most && queue[count].claim == first) ++count;
  return count;
}

Turn turn_of(std::span<const Queued> queue, std::size_t own) {
  using Kind = Turn::Kind;
  const std::size_t holders = count_holders(queue);
  if (own < holders) return {};
  const Claim claim = queue[own].claim;
  if (!modes_mix(claim, queue.front().claim)) return {.kind = Kind::refused};
  if (claim.mode == Mode::slots && own == holders) {
    Turn turn{.kind = Kind::wait_for_any};
    for (const Queued& holder : queue.first(holders)) turn.look = std::min(turn.look, holder.ends);
    return turn;
  }
  // A reader that has to wait is behind a writer, so this ends.
  std::size_t before = own - 1;
  while (claim.mode == Mode::shared && queue[before].claim.mode == Mode::shared) --before;
  return {.kind = Kind::wait_for_one, .index = before, .look = queue[before].ends};
}

unsigned free_slot(std::span<const unsigned> taken, unsigned slots, std::size_t leave) {
  std::vector<unsigned> sorted(taken.begin(), taken.end());
  std::sort(sorted.begin(), sorted.end());
  unsigned found = 0;
  for (unsigned number = 1; number <= slots; ++number) {
    if (std::binary_search(sorted.begin(), sorted.end(), number)) continue;
    found = number;
    if (leave-- == 0) break;
  }
  return found;
}

}  // namespace dlock
