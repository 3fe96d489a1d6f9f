// From a request to a lease, on one Redis server or several: what AcquireProtocol decides, over the
// network.
#pragma once

#include <memory>

#include "backends/redis/cluster.hpp"
#include "core/backend.hpp"

namespace dlock::redis {

Result<std::unique_ptr<Lease>> acquire(const std::shared_ptr<Cluster>& cluster,
                                       const Request& request, const Wait& wait);

}  // namespace dlock::redis
