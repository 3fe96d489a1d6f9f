// What `dlock doctor` finds out about Redis servers.
#pragma once

#include <memory>

#include "core/backend.hpp"

namespace dlock::redis {

/// As BackendEntry::examine() says.
Result<std::unique_ptr<Examination>> examine(const Target& target, Millis ttl);
Result<std::unique_ptr<Examination>> examine_redlock(const Target& target, Millis ttl);

}  // namespace dlock::redis
