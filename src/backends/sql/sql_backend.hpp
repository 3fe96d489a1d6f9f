// Backend for databases: the locks of one method.
#pragma once

#include <memory>

#include "backends/sql/database.hpp"
#include "core/backend.hpp"

namespace dlock::sql {

/// No network: a connection is made when it is needed.
std::unique_ptr<Backend> make_backend(std::shared_ptr<const Database> database);

}  // namespace dlock::sql
