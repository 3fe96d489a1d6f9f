// dlock renew: extends a lock of dlock acquire --ttl.
#pragma once

#include <span>

#include "cli/parse.hpp"
#include "core/backend.hpp"

namespace dlock::cli {

int cmd_renew(const Invocation& invocation, std::span<const BackendEntry> backends);

}  // namespace dlock::cli
