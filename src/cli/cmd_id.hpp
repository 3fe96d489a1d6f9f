// dlock id: numbers that are unique over all machines.
#pragma once

#include <span>

#include "cli/parse.hpp"
#include "core/backend.hpp"

namespace dlock::cli {

int cmd_id(const Invocation& invocation, std::span<const BackendEntry> backends);

}  // namespace dlock::cli
