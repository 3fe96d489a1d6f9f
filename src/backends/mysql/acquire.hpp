// Getting a lock.
#pragma once

#include <memory>

#include "backends/mysql/place.hpp"
#include "backends/mysql/schema.hpp"
#include "core/backend.hpp"

namespace dlock::mysql {

/// Backend::acquire() of each method.
Result<std::unique_ptr<Lease>> acquire(const std::shared_ptr<const Place>& place, Method method,
                                       const Request& request, const Wait& wait);

}  // namespace dlock::mysql
