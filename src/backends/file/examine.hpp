// What `dlock doctor` finds out about a directory of locks.
#pragma once

#include <memory>

#include "core/backend.hpp"

namespace dlock::file {

/// As BackendEntry::examine() says.
Result<std::unique_ptr<Examination>> examine(const Target& target, Millis ttl);

}  // namespace dlock::file
