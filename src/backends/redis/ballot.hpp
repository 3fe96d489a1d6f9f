// What the votes of several servers mean for those that did not get the lock: pure reasoning.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "backends/redis/node.hpp"

namespace dlock::redis {

class Ballot {
 public:
  /// `ranks`: of each server in an order that is the same for all clients.
  /// `needed`: how many of them must grant.  `head`: where we wait, or are to wait first.
  Ballot(std::vector<unsigned> ranks, unsigned needed, unsigned head)
      : ranks_(std::move(ranks)), votes_(ranks_.size()), needed_(needed), head_(head) {}

  void put(unsigned node, const Vote& vote) { votes_[node] = vote; }
  void take_back(unsigned node) { votes_[node].reset(); }

  const std::optional<Vote>& at(unsigned node) const { return votes_[node]; }
  bool grants(unsigned node) const {
    return votes_[node] && votes_[node]->kind == Vote::Kind::granted;
  }
  unsigned count(Vote::Kind kind) const;
  bool refuses(unsigned node) const { return votes_[node] && !grants(node); }

  struct Refusal {
    unsigned head = 0;     // the best of these servers to wait at
    unsigned servers = 0;  // how many refuse for the same reason
    bool denies = false;   // these are enough: even if all others granted it
  };
  /// What most of those that refuse have in common.  The others may have what somebody has left
  /// there, or what several have got that ask at this moment: that is in nobody's way.
  Refusal common_refusal() const;

  /// Where those meet whose votes were split.  `that_grants`: a server that has granted it, since
  /// what the others refuse for may be left from holders that have gone.
  unsigned meeting_point(bool that_grants = false) const;

  /// A server that refuses because of a client that asks by another list than `list`.
  std::optional<unsigned> with_another_list(std::string_view list) const;

 private:
  bool is_better_head(unsigned node, unsigned other) const;

  const std::vector<unsigned> ranks_;
  std::vector<std::optional<Vote>> votes_;
  const unsigned needed_;
  const unsigned head_;
};

}  // namespace dlock::redis
