#include "backends/redis/ballot.hpp"

#include <algorithm>

namespace dlock::redis {

unsigned Ballot::count(Vote::Kind kind) const {
  return static_cast<unsigned>(std::count_if(
      votes_.begin(), votes_.end(), [&](const auto& vote) { return vote && vote->kind == kind; }));
}

Ballot::Refusal Ballot::common_refusal() const {
  Refusal best{.head = head_};
  for (unsigned node = 0; node < votes_.size(); ++node) {
    if (!refuses(node)) continue;
    const auto count = std::count_if(votes_.begin(), votes_.end(), [&](const auto& vote) {
      return vote && vote->kind == votes_[node]->kind && vote->holder == votes_[node]->holder;
    });
    const auto servers = static_cast<unsigned>(count);
    if (servers < best.servers) continue;
    if (servers > best.servers || is_better_head(node, best.head)) best = {node, servers};
  }
  best.denies = votes_.size() - best.servers < needed_;
  return best;
}

// Not one whose clock was set back, where the lock would last for much longer than elsewhere; else
// ours, or the first.
bool Ballot::is_better_head(unsigned node, unsigned other) const {
  const auto outlasts = [&](unsigned one, unsigned two) {
    const auto& look_in = votes_[two]->look_in;
    return look_in && votes_[one]->look_in.value_or(Millis::max()) > 2 * *look_in + Millis{1'000};
  };
  if (outlasts(other, node)) return true;
  if (outlasts(node, other)) return false;
  return node == head_ || (other != head_ && ranks_[node] < ranks_[other]);
}

unsigned Ballot::meeting_point(bool that_grants) const {
  std::optional<unsigned> first;
  for (unsigned node = 0; node < votes_.size(); ++node) {
    if (that_grants && !grants(node)) continue;
    if (votes_[node] && (!first || ranks_[node] < ranks_[*first])) first = node;
  }
  return first.value_or(head_);
}

std::optional<unsigned> Ballot::with_another_list(std::string_view list) const {
  for (unsigned node = 0; node < votes_.size(); ++node) {
    if (votes_[node] && !votes_[node]->list.empty() && votes_[node]->list != list) return node;
  }
  return std::nullopt;
}

}  // namespace dlock::redis
