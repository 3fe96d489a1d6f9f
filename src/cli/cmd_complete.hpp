// dlock complete: answers a shell that completes a command line.
#pragma once

#include <span>

#include "cli/parse.hpp"
#include "core/backend.hpp"

namespace dlock::cli {

int cmd_complete(const Invocation& invocation, std::span<const BackendEntry> backends);

}  // namespace dlock::cli
