// Waiting for a lock.
#pragma once

#include <memory>

#include "backends/zookeeper/place.hpp"
#include "core/backend.hpp"

namespace dlock::zookeeper {

Result<std::unique_ptr<Lease>> acquire(const std::shared_ptr<const Place>& place,
                                       const Request& request, const Wait& wait);

}  // namespace dlock::zookeeper
