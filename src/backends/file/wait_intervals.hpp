// How often a waiter checks what no event tells it, or may tell too late.
#pragma once

#include "util/clock.hpp"

namespace dlock::file {

struct WaitIntervals {
  Millis holders{10'000};       // who holds the lock, for the waiter's user; a slot that is free
  Millis first_holders{1'000};  // the same, until a holder was seen
  Millis file{60'000};          // whether the lock file is still in its place, without inotify
};

}  // namespace dlock::file
