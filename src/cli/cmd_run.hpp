// dlock run: from settings to a job for the engine.
#pragma once

#include <span>

#include "cli/lock_plan.hpp"
#include "cli/parse.hpp"
#include "core/backend.hpp"

namespace dlock::cli {

/// Reads environment and config file into `settings`, checks everything that can be checked before
/// anything is started, and sets the log.  Throws Refusal.
RunPlan plan_run(const Invocation& invocation, std::span<const BackendEntry> backends,
                 Settings& settings);

int cmd_run(const Invocation& invocation, std::span<const BackendEntry> backends);

}  // namespace dlock::cli
