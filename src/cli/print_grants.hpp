// Prints acquired locks on stdout, for scripts.
#pragma once

#include <span>
#include <string>

#include "engine/grant.hpp"

namespace dlock::cli {

/// The lock id of each, on a line of its own.
std::string print_tokens(std::span<const Grant> grants);

/// A JSON object for each, on a line of its own.
std::string print_grants_json(std::span<const Grant> grants);

}  // namespace dlock::cli
