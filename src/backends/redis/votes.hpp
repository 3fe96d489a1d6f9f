// The answers of several servers to one question, and when they are enough: pure arithmetic.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace dlock::redis {

class Votes {
 public:
  enum class Vote : std::uint8_t {
    open,
    yes,
    no,
    silent,     // no answer in time: it may have done what was asked
    overtaken,  // another has this fencing token or a larger one: it may say yes to the next
    taken,      // another has this number: it may say yes to another one
  };

  /// `needed` of `servers` must say yes.
  Votes(unsigned servers, unsigned needed) : votes_(servers, Vote::open), needed_(needed) {}

  /// What a server answers later replaces what was put for it before.
  void put(unsigned server, Vote vote) { votes_[server] = vote; }
  Vote at(unsigned server) const { return votes_[server]; }
  unsigned count(Vote vote) const {
    return static_cast<unsigned>(std::count(votes_.begin(), votes_.end(), vote));
  }
  unsigned servers() const { return static_cast<unsigned>(votes_.size()); }
  unsigned needed() const { return needed_; }

  bool reached() const { return count(Vote::yes) >= needed_; }
  /// Not even if all that are open say yes.
  bool out_of_reach() const { return count(Vote::yes) + count(Vote::open) < needed_; }
  /// A majority has answered, or nobody else will.
  bool are_told() const {
    const unsigned missing = count(Vote::open) + count(Vote::silent);
    return count(Vote::open) == 0 || servers() - missing >= needed_;
  }
  /// Not even if they are asked again with another token or number.
  bool is_hopeless() const { return servers() - count(Vote::no) - count(Vote::silent) < needed_; }
  /// Not even if the silent servers have done it.  This is certain.
  bool denied() const { return servers() - count(Vote::no) < needed_; }

 private:
  std::vector<Vote> votes_;
  unsigned needed_;
};

}  // namespace dlock::redis
