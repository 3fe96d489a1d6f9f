// When enough servers have granted a lock, and for how long it is then ours: pure arithmetic.
#pragma once

#include <cstdint>

#include "util/clock.hpp"

namespace dlock::redis {

/// How many of `nodes` must grant so that no more than `slots` can hold at once:
/// floor(nodes * slots / (slots + 1)) + 1, which for one slot is the usual majority.  With a plain
/// majority 3 clients could hold 2 slots on 5 servers.
constexpr unsigned quorum(unsigned nodes, unsigned slots) {
  const std::uint64_t all = std::uint64_t{nodes} * slots;
  return static_cast<unsigned>(all / (std::uint64_t{slots} + 1)) + 1;
}

/// What is taken off a ttl for clocks that run at different speeds: 1 % each, and 2 ms because a
/// server expires in whole milliseconds
/// (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/).
constexpr Millis drift_allowance(Millis ttl) { return ttl / 50 + Millis{2}; }

/// Until when a lease may be trusted that was asked for at `asked`: the server started to count
/// later than that.
constexpr Deadline trusted_until(Deadline asked, Millis ttl) {
  return asked + ttl - drift_allowance(ttl);
}

}  // namespace dlock::redis
