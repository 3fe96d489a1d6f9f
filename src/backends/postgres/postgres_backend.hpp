// Locks in a PostgreSQL database: as a row, or with a row that is locked as well.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "backends/postgres/schema.hpp"
#include "core/backend.hpp"

namespace dlock::postgres {

/// As BackendEntry says.
Result<std::string> place(const Target& target);
bool has_one_lock(const Target& target);
template <Method method>
Result<std::unique_ptr<Backend>> open(const Target& target, Deadline deadline, Cancel cancel);
std::string schema_of(std::string_view prefix);

}  // namespace dlock::postgres
