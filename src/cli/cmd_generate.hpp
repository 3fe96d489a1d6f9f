// dlock generate: the files in man/ and completions/.
#pragma once

#include <span>

#include "cli/parse.hpp"
#include "core/backend.hpp"

namespace dlock::cli {

int cmd_generate(const Invocation& invocation, std::span<const BackendEntry> backends);

}  // namespace dlock::cli
