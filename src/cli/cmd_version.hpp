// dlock version.
#pragma once

#include <span>

#include "cli/parse.hpp"
#include "core/backend.hpp"

namespace dlock::cli {

int cmd_version(const Invocation& invocation, std::span<const BackendEntry> backends);

}  // namespace dlock::cli
