// When enough servers have granted a lock, and for how long it is then ours: pure arithmetic.
#pragma once

#include "core/lease_time.hpp"

namespace dlock::redis {

/// How many of `nodes` must agree: any two majorities share a server.
constexpr unsigned quorum(unsigned nodes) { return nodes / 2 + 1; }

}  // namespace dlock::redis
