// Until when a lease may be trusted: pure arithmetic.
#pragma once

#include "util/clock.hpp"

namespace dlock {

/// What is taken off a ttl for clocks that run at different speeds: 1 % each, and 2 ms because a
/// server expires in whole milliseconds
/// (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/).
constexpr Millis drift_allowance(Millis ttl) { return ttl / 50 + Millis{2}; }

/// Until when a lease may be trusted that was asked for at `asked`: the server started to count
/// later than that.
constexpr Deadline trusted_until(Deadline asked, Millis ttl) {
  return asked + ttl - drift_allowance(ttl);
}

}  // namespace dlock
