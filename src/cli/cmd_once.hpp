// dlock once: runs a command as dlock run does, unless it has succeeded before.
#pragma once

#include <span>

#include "cli/parse.hpp"
#include "core/backend.hpp"

namespace dlock::cli {

int cmd_once(const Invocation& invocation, std::span<const BackendEntry> backends);

}  // namespace dlock::cli
