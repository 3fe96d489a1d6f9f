// One attempt to get a lock from the majority of several servers, as pure reasoning: who drives it
// sends the requests, feeds the answers in as they come, and tells the time.
//
// https://redis.io/docs/latest/develop/use/patterns/distributed-locks/, with a second round that
// makes the fencing tokens grow.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/redis/quorum.hpp"
#include "backends/redis/slots.hpp"
#include "util/clock.hpp"

namespace dlock::redis {

/// The answers of several servers to one question.
class Tally {
 public:
  enum class Answer { open, yes, no, silent };  // silent: it may have done it all the same

  Tally(unsigned nodes, unsigned needed) : answers_(nodes, Answer::open), needed_(needed) {}

  /// What a server answers later counts instead of what was put for it before.
  void put(unsigned node, Answer answer) { answers_[node] = answer; }
  Answer at(unsigned node) const { return answers_[node]; }
  unsigned count(Answer answer) const;
  unsigned nodes() const { return static_cast<unsigned>(answers_.size()); }
  unsigned needed() const { return needed_; }

  bool reached() const { return count(Answer::yes) >= needed_; }
  /// Not even if all that are open say yes.
  bool out_of_reach() const { return count(Answer::yes) + count(Answer::open) < needed_; }
  /// Not even if also the silent ones have done it: this is certain.
  bool denied() const { return nodes() - count(Answer::no) < needed_; }

 private:
  std::vector<Answer> answers_;
  unsigned needed_;
};

class Attempt {
 public:
  /// `asked`: before the first request was sent.
  /// `slots`: how many numbers there are, one of which is to be ours; 0: it needs none.
  Attempt(unsigned nodes, unsigned needed, Deadline asked, Millis ttl, unsigned slots = 0);

  // --- the first round: is it free?

  /// `counter`: the largest token that this server knows of.  Where there is only one server, it
  /// has counted already, and this is the token.  `clock_ms`: its time in milliseconds since 1970.
  void granted(unsigned node, std::uint64_t counter, std::uint64_t clock_ms,
               NumbersThere numbers = {});
  void refused(unsigned node) { grants_.put(node, Tally::Answer::no); }
  void silent(unsigned node) { grants_.put(node, Tally::Answer::silent); }
  void asked_again(unsigned node) { grants_.put(node, Tally::Answer::open); }

  // --- the second one, if the first has succeeded: token() is to be written to the counters of
  //     writers(), where it is larger than what stands there, or was written by us; and slot() is
  //     to be taken there.

  std::uint64_t token() const { return token_; }
  /// 0: none is free on a majority of the servers, or it needs none.
  unsigned slot() const { return slot_; }
  /// A majority has granted the lock, but no number is free on one: others hold all of them.
  bool lacks_number() const;
  /// The number was free, but some server had it for another by the time of the second round.
  /// Others may be free all the same.
  bool lost_race() const { return number_was_taken_; }
  /// Those that have granted the lock and have not been asked to write this token.  Marks them as
  /// asked.
  std::vector<unsigned> writers();
  /// It has written `token`.
  void written(unsigned node, std::uint64_t token);
  /// No answer: it may have written it all the same.
  void unwritten(unsigned node, std::uint64_t token);
  /// It does not hold our grant any more.
  void vanished(unsigned node);
  /// Another holder has the number there, so what it has granted does not count.
  void taken(unsigned node);
  /// Another's token stands there, as happens when several share a lock: all write a larger one. By
  /// how much is a matter of chance (`random` is any number), or those that collide would again.
  void overtaken(std::uint64_t counter, std::uint64_t random);

  enum class State {
    asking,   // the first round is open
    writing,  // the second one is
    held,
    failed,  // everything that was or may have been granted is to be undone
  };
  State state(Deadline now) const;

  /// Until when the grant may be trusted.
  Deadline valid_until() const { return trusted_until(asked_, ttl_); }
  const Tally& grants() const { return grants_; }
  const Tally& writes() const { return writes_; }

 private:
  bool writes_itself() const { return grants_.nodes() == 1; }
  bool can_be_written() const;

  const unsigned slots_;
  std::vector<std::optional<NumbersThere>> numbers_;  // of those that have granted it
  unsigned slot_ = 0;
  bool number_was_taken_ = false;
  Tally grants_;
  Tally writes_;
  std::vector<bool> asked_to_write_;
  std::vector<std::uint64_t> clocks_;  // of those that have granted it
  std::uint64_t highest_counter_ = 0;
  std::uint64_t token_ = 0;
  bool is_fixed_ = false;  // the token, and the number: since the second round has begun
  unsigned overtakings_ = 0;
  const Deadline asked_;
  const Millis ttl_;
};

}  // namespace dlock::redis
