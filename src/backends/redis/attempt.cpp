// Exclusion.  Two majorities share a server, and that one has granted the lock to one of the two.
// Tokens.     The largest counter of a majority that granted is not enough: the next holder may be
//             granted by servers that have not heard of it.  So each token is written back, and
//             counts only when a majority has it.  Whoever is granted later asks a majority, one of
//             which has it, and takes a larger one.  Two that take the same number meet at a server
//             that writes it for one of them only.
//             A token is also no smaller than the time in milliseconds, so that tokens grow even if
//             a majority has lost its counters, or forgotten them after a week.  The time is the
//             median of the granting servers: one clock that is wrong moves it only to another
//             server's time.
// Slots.      Each number is an exclusive lock: a server gives it to one holder at a time, and that
//             holder needs a majority.  So two can never have the same number, and there are never
//             more holders than numbers, however many each server has room for.  All that a holder
//             counts on is such a majority at one time: of those that acknowledge token and number
//             together, and later of those that renew both.  A renewal also takes the number where
//             it is free, which is the same as a server that answers the second round late.
// Time.       The grants run out one by one, the first of them no earlier than the ttl after
//             `asked`: so from there, minus the drift, a majority is still there.
#include "backends/redis/attempt.hpp"

#include <algorithm>

namespace dlock::redis {

unsigned Tally::count(Answer answer) const {
  return static_cast<unsigned>(std::count(answers_.begin(), answers_.end(), answer));
}

Attempt::Attempt(unsigned nodes, unsigned needed, Deadline asked, Millis ttl, unsigned slots)
    : slots_(slots),
      numbers_(nodes),
      grants_(nodes, needed),
      writes_(nodes, needed),
      asked_to_write_(nodes),
      asked_(asked),
      ttl_(ttl) {}

void Attempt::granted(unsigned node, std::uint64_t counter, std::uint64_t clock_ms,
                      NumbersThere numbers) {
  grants_.put(node, Tally::Answer::yes);
  if (writes_itself()) {
    token_ = counter;
    slot_ = slots_ > 0 ? numbers.given : 0;
  } else if (!is_fixed_) {
    clocks_.insert(std::upper_bound(clocks_.begin(), clocks_.end(), clock_ms), clock_ms);
    highest_counter_ = std::max(highest_counter_, counter);
    token_ = std::max(highest_counter_ + 1, clocks_[(clocks_.size() - 1) / 2]);
    numbers_[node] = std::move(numbers);
    slot_ = choose_slot(slots_, grants_.needed(), numbers_);
  }
}

std::vector<unsigned> Attempt::writers() {
  is_fixed_ = true;
  std::vector<unsigned> out;
  for (unsigned node = 0; node < grants_.nodes(); ++node) {
    if (grants_.at(node) != Tally::Answer::yes || asked_to_write_[node]) continue;
    asked_to_write_[node] = true;
    out.push_back(node);
  }
  return out;
}

void Attempt::written(unsigned node, std::uint64_t token) {
  if (token == token_) writes_.put(node, Tally::Answer::yes);
}

void Attempt::unwritten(unsigned node, std::uint64_t token) {
  if (token == token_) writes_.put(node, Tally::Answer::silent);
}

void Attempt::vanished(unsigned node) {
  grants_.put(node, Tally::Answer::no);
  writes_.put(node, Tally::Answer::no);
}

void Attempt::taken(unsigned node) {
  number_was_taken_ = true;
  vanished(node);
}

bool Attempt::lacks_number() const {
  return slots_ > 0 && slot_ == 0 && !writes_itself() && grants_.reached();
}

void Attempt::overtaken(std::uint64_t counter, std::uint64_t random) {
  if (counter < token_) return;  // by now all write a larger one anyway
  constexpr unsigned kMostDoublings = 10;
  const std::uint64_t range = std::uint64_t{1} << std::min(++overtakings_, kMostDoublings);
  token_ = counter + 1 + random % range;
  writes_ = Tally(grants_.nodes(), grants_.needed());
  asked_to_write_.assign(grants_.nodes(), false);
}

// By those that have written, and those that still may: also one that has not granted yet.
bool Attempt::can_be_written() const {
  unsigned able = 0;
  for (unsigned node = 0; node < grants_.nodes(); ++node) {
    const bool may_grant =
        grants_.at(node) == Tally::Answer::yes || grants_.at(node) == Tally::Answer::open;
    const bool may_write = writes_.at(node) == Tally::Answer::open && may_grant;
    if (may_write || writes_.at(node) == Tally::Answer::yes) ++able;
  }
  return able >= grants_.needed();
}

Attempt::State Attempt::state(Deadline now) const {
  if (grants_.out_of_reach() || now >= valid_until()) return State::failed;
  if (!grants_.reached()) return State::asking;
  if (writes_itself() || writes_.reached()) return State::held;
  // One more server may have a number free that the others have.
  if (slots_ > 0 && slot_ == 0) {
    return grants_.count(Tally::Answer::open) > 0 ? State::asking : State::failed;
  }
  return can_be_written() ? State::writing : State::failed;
}

}  // namespace dlock::redis
