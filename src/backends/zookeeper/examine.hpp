// What `dlock doctor` finds out about ZooKeeper servers.
#pragma once

#include <memory>

#include "core/backend.hpp"

namespace dlock::zookeeper {

/// As BackendEntry::examine() says.
Result<std::unique_ptr<Examination>> examine(const Target& target, Millis ttl);

}  // namespace dlock::zookeeper
