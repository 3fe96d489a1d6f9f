// What `dlock doctor` finds out about PostgreSQL servers.
#pragma once

#include <memory>

#include "backends/postgres/schema.hpp"
#include "core/backend.hpp"

namespace dlock::postgres {

/// As BackendEntry::examine() says.
template <Method method>
Result<std::unique_ptr<Examination>> examine(const Target& target, Millis ttl);

}  // namespace dlock::postgres
