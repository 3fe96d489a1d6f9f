// Locks on one Redis server.  BACKENDS: a lock is one key, held by a script and for a ttl.
#pragma once

#include <memory>

#include "core/backend.hpp"

namespace dlock::redis {

Result<void> check(const Target& target);

/// Connects when the first lock is asked for.
Result<std::unique_ptr<Backend>> open(const Target& target, Deadline deadline, Cancel cancel);

}  // namespace dlock::redis
