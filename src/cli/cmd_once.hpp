// dlock once: as dlock run, and what has succeeded is not done again.
#pragma once

#include <span>

#include "cli/parse.hpp"
#include "core/backend.hpp"

namespace dlock::cli {

int cmd_once(const Invocation& invocation, std::span<const BackendEntry> backends);

}  // namespace dlock::cli
