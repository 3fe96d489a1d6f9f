// How often a waiter checks what no event tells it, or may tell too late.
#pragma once

#include "util/clock.hpp"

namespace dlock::file {

struct WaitIntervals {
  // Who holds the lock, whether the files are still in their places, and whether the lock can be
  // had without the gate.
  Millis holders{10'000};
  Millis first_holders{1'000};  // the same, until a holder was seen
};

}  // namespace dlock::file
