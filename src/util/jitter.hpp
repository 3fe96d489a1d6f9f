#pragma once

#include "util/clock.hpp"

namespace dlock::util {

/// A time at random, from `least` to `most`: those who wait for the same thing are not to ask again
/// at the same moment.  For any thread.
Millis jitter(Millis least, Millis most);
/// At least a millisecond.
inline Millis jitter(Millis most) { return jitter(Millis{1}, most); }

}  // namespace dlock::util
