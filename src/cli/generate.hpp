// Writes the man page and the completion scripts from the tables of flags, commands, backends and
// exit statuses.  The result does not depend on the backends that are built in.
#pragma once

#include <span>
#include <string>

#include "core/backend.hpp"

namespace dlock::cli {

std::string generate_man(std::span<const BackendEntry> backends);
std::string generate_bash(std::span<const BackendEntry> backends);
std::string generate_zsh(std::span<const BackendEntry> backends);
std::string generate_fish(std::span<const BackendEntry> backends);

}  // namespace dlock::cli
