// dlock help, and --help behind each command.
#pragma once

#include <span>
#include <string>

#include "cli/parse.hpp"
#include "core/backend.hpp"

namespace dlock::cli {

/// What `dlock help COMMAND` and `dlock COMMAND --help` print: at most 75 lines of 80 columns.
std::string help_of(const Command& command);

/// What `dlock help` prints.
std::string overview();

int cmd_help(const Invocation& invocation, std::span<const BackendEntry> backends);

}  // namespace dlock::cli
