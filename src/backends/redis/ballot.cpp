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

// Ours, or the first.
bool Ballot::is_better_head(unsigned node, unsigned other) const {
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
