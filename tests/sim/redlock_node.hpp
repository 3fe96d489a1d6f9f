// One simulated Redis server: what the scripts in src/backends/redis/lua do to the keys of one
// lock, without the queue.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/backend.hpp"
#include "local_clock.hpp"

namespace dlock::sim {

/// Names one acquisition.
using Id = std::uint64_t;

class Node {
 public:
  /// `slots`: of every lock in slots mode.
  Node(Millis ttl, unsigned slots) : ttl_(ttl), slots_(slots) {}

  /// False: somebody else holds it.
  bool grant(Id id, Mode mode, bool wants_number, Deadline now);
  /// The number that this slots holder has here; 0: none.
  unsigned number_of(Id id) const;
  /// No slots holder has more than one number here.
  bool has_no_two_numbers() const;
  /// Which numbers others have: "101" are 1 and 3.
  std::string taken_by_others(Id id) const;
  enum class Written { written, gone, overtaken, taken };
  /// `slot`: as in fence.lua; 0: none.
  Written write(Id id, std::uint64_t token, unsigned slot, Deadline now);
  enum class Renewed { renewed, gone, taken };
  Renewed renew(Id id, unsigned slot, Deadline now);
  bool remove(Id id, Deadline now);
  /// A server that has lost its data is given the rest of a lease; see again.lua.
  bool give_again(Id id, Mode mode, std::uint64_t token, unsigned slot, Millis rest, Deadline now);

  std::uint64_t counter() const { return counter_; }
  /// As a single server does with each grant.
  std::uint64_t count() { return ++counter_; }
  /// A restart without its data.
  void forget();

  /// How it may be broken on purpose.
  struct Bugs {
    bool removes_any = false;
    bool renews_any = false;
    bool any_token_ties = false;
    bool gives_again_what_is_taken = false;
    bool gives_numbers_twice = false;
    bool takes_the_number_first = false;
  };
  Bugs bugs;

  // What no server knows: whether an operation has changed another's grant, and whether a grant has
  // outlived the last request of its holder by more than the ttl.
  bool changed_foreign() const { return changed_foreign_; }
  bool kept_too_long() const { return kept_too_long_; }

 private:
  struct Holder {
    Id id;
    Millis expires;
    Millis asked;             // when its last request came that may prolong it
    std::uint64_t token = 0;  // that it has written; a new grant starts without one
  };

  Holder* find(Id id);
  bool has(Id id) const;
  bool take_number(Id id, unsigned slot);
  void drop_numbers(Id id);
  Millis purge(Deadline now);

  const Millis ttl_;
  const unsigned slots_;
  std::map<unsigned, Id> numbers_;  // counts only as long as that is a holder
  Mode mode_ = Mode::exclusive;
  std::vector<Holder> holders_;
  bool again_ = false;  // '@again' of again.lua
  std::uint64_t counter_ = 0;
  bool changed_foreign_ = false;
  bool kept_too_long_ = false;
};

}  // namespace dlock::sim
