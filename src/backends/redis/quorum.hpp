// When enough servers have granted a lock, and how long they are waited for: pure arithmetic.
#pragma once

#include <algorithm>

#include "core/lease_time.hpp"

namespace dlock::redis {

/// How many of `servers` must agree: any two majorities share a server.
constexpr unsigned quorum(unsigned servers) { return servers / 2 + 1; }

/// How long one of several servers may take to answer.
constexpr Millis answer_within(Millis ttl) { return std::min(ttl / 20, Millis{200}); }

/// How long a process that will not keep the lock waits for the servers that are slower than the
/// majority, also for those that have to be connected.
constexpr Millis stragglers_within(Millis ttl) { return std::min(ttl / 20, Millis{1'000}); }

}  // namespace dlock::redis
