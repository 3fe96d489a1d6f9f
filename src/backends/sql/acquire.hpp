// Getting a lock.
#pragma once

#include <memory>

#include "backends/sql/database.hpp"
#include "core/backend.hpp"

namespace dlock::sql {

/// Backend::acquire() of all methods.
Result<std::unique_ptr<Lease>> acquire(const std::shared_ptr<const Database>& database,
                                       const Request& request, const Wait& wait);

}  // namespace dlock::sql
