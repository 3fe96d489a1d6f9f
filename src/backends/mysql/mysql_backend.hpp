// Locks in a MySQL or MariaDB database: as a unique row, with a locked row as well, as a row with a
// version.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "backends/mysql/schema.hpp"
#include "core/backend.hpp"

namespace dlock::mysql {

/// As BackendEntry says.
Result<std::string> place(const Target& target);
template <Method method>
Result<std::unique_ptr<Backend>> open(const Target& target, Deadline deadline, Cancel cancel);
std::string schema_of(std::string_view prefix);

}  // namespace dlock::mysql
