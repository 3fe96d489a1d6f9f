// How often a waiter wakes up although nothing has woken it.
#pragma once

#include "util/clock.hpp"

namespace dlock::file {

struct WaitIntervals {
  // To find out who holds the lock, whether the files are still in their places, and whether the
  // lock can be had without the gate: one wake-up is enough for all of these.
  Millis holders{10'000};
  Millis until_holder_seen{1'000};  // the same, while no holder has been seen
  // To try the slots, for the waiter that has the gate: a holder that was killed deletes no
  // registration, which would wake the waiter.
  Millis slots{200};
};

}  // namespace dlock::file
