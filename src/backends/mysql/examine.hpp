// What `dlock doctor` finds out about MySQL and MariaDB servers.
#pragma once

#include <memory>

#include "backends/mysql/schema.hpp"
#include "core/backend.hpp"

namespace dlock::mysql {

/// As BackendEntry::examine() says.
template <Method method>
Result<std::unique_ptr<Examination>> examine(const Target& target, Millis ttl);

}  // namespace dlock::mysql
