// The process that holds the locks: connects, acquires, starts the command, watches over all.
#pragma once

#include "engine/run_context.hpp"

namespace dlock {

/// Runs in the process that was forked for it, to its end: never returns.
[[noreturn]] void supervise(const RunContext& context, SupervisorEnd link);

}  // namespace dlock
