// From a request to a lease on one Redis server.
#pragma once

#include <memory>

#include "backends/redis/node.hpp"
#include "core/backend.hpp"

namespace dlock::redis {

Result<std::unique_ptr<Lease>> acquire(const std::shared_ptr<Node>& node, const Request& request,
                                       const Wait& wait);

}  // namespace dlock::redis
