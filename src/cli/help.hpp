// The texts of dlock help, and of --help behind each command.
#pragma once

#include <string>

#include "cli/commands.hpp"

namespace dlock::cli {

/// What `dlock help COMMAND` and `dlock COMMAND --help` print: at most 75 lines of 80 columns.
std::string help_of(const Command& command);

/// What `dlock help` prints.
std::string overview();

}  // namespace dlock::cli
