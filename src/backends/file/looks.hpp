// How often a waiter looks again.
#pragma once

#include "util/clock.hpp"

namespace dlock::file {

/// Intervals between looks at what no event tells a waiter.
struct Looks {
  Millis holders{10'000};       // at the holder, to tell the waiter's user
  Millis first_holders{1'000};  // the same until a holder was seen: one was just acquiring the lock
  Millis file{60'000};          // whether the lock file is still in its place, without inotify
};

}  // namespace dlock::file
