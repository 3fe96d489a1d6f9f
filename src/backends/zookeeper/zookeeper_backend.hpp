// Locks on a ZooKeeper ensemble.
#pragma once

#include <memory>
#include <string>

#include "core/backend.hpp"

namespace dlock::zookeeper {

/// As BackendEntry says.
Result<std::string> place(const Target& target);

/// Connects when something is asked for.
Result<std::unique_ptr<Backend>> open(const Target& target, Deadline deadline, Cancel cancel);

}  // namespace dlock::zookeeper
