// dlock help, and --help behind each command.
#pragma once

#include <span>
#include <string>

#include "cli/parse.hpp"
#include "core/backend.hpp"

namespace dlock::cli {

/// What `COMMAND --help` prints: a line for each option.
std::string short_help(const Command& command);

/// What `dlock help COMMAND` prints: all there is to say.
std::string full_help(const Command& command);

int cmd_help(const Invocation& invocation, std::span<const BackendEntry> backends);

}  // namespace dlock::cli
