// When something must happen before the end of a lease.
//
//      valid_until - max(kill_after, last_kill)   SIGTERM: the end of the tree begins
//      valid_until - last_kill                    SIGKILL, by the supervisor
//      valid_until - last_kill / 2                SIGKILL, by launcher or guard, if none came
//      valid_until                                the tree is dead; others may hold the lock
#pragma once

#include <algorithm>

#include "util/clock.hpp"

namespace dlock {

struct Margins {
  Millis kill_after;

  /// How long before valid_until the last SIGKILL is sent: a walk over a tree takes milliseconds,
  /// being scheduled on a busy machine some tens.
  constexpr Millis last_kill() const {
    return std::clamp<Millis>(kill_after / 4, Millis{50}, Millis{500});
  }
  constexpr Deadline term_at(Deadline valid_until) const {
    return before(valid_until, std::max(kill_after, last_kill()));
  }
  constexpr Deadline kill_at(Deadline valid_until) const {
    return before(valid_until, last_kill());
  }
  constexpr Deadline launcher_kills_at(Deadline valid_until) const {
    return before(valid_until, last_kill() / 2);
  }

 private:
  static constexpr Deadline before(Deadline instant, Millis duration) {
    return instant == kNever ? kNever : instant - duration;
  }
};

}  // namespace dlock
