// Locks on one Redis server, or on a majority of several independent ones.
#pragma once

#include <memory>
#include <string>

#include "core/backend.hpp"

namespace dlock::redis {

/// As BackendEntry says.
Result<std::string> place(const Target& target);

/// Connects when the first lock is asked for.
Result<std::unique_ptr<Backend>> open(const Target& target, Deadline deadline, Cancel cancel);

/// The same for redlock.
Result<std::string> place_redlock(const Target& target);
Result<std::unique_ptr<Backend>> open_redlock(const Target& target, Deadline deadline,
                                              Cancel cancel);

}  // namespace dlock::redis
