// dlock show.
#pragma once

#include <span>

#include "cli/parse.hpp"
#include "core/backend.hpp"

namespace dlock::cli {

int cmd_show(const Invocation& invocation, std::span<const BackendEntry> backends);

}  // namespace dlock::cli
