// The man page and the completion scripts, written from the tables of flags, commands, backends and
// exit statuses.  They do not depend on what is built in.
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
