// When enough servers have granted a lock, and for how long it is then ours: pure arithmetic.
#pragma once

#include <cstdint>

#include "core/lease_time.hpp"

namespace dlock::redis {

/// How many of `nodes` must grant so that no more than `slots` can hold at once:
/// floor(nodes * slots / (slots + 1)) + 1, which for one slot is the usual majority.  With a plain
/// majority 3 clients could hold 2 slots on 5 servers.
constexpr unsigned quorum(unsigned nodes, unsigned slots) {
  const std::uint64_t all = std::uint64_t{nodes} * slots;
  return static_cast<unsigned>(all / (std::uint64_t{slots} + 1)) + 1;
}

}  // namespace dlock::redis
