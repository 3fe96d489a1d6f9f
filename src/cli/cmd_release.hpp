// dlock release: releases a lock of dlock acquire.
#pragma once

#include <span>

#include "cli/parse.hpp"
#include "core/backend.hpp"

namespace dlock::cli {

int cmd_release(const Invocation& invocation, std::span<const BackendEntry> backends);

}  // namespace dlock::cli
