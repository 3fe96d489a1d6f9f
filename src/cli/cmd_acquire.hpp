// dlock acquire: a lock that stays held when dlock has ended.
#pragma once

#include <span>

#include "cli/parse.hpp"
#include "core/backend.hpp"

namespace dlock::cli {

int cmd_acquire(const Invocation& invocation, std::span<const BackendEntry> backends);

}  // namespace dlock::cli
