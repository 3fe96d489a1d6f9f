// The supervisor of `dlock acquire`: gets the locks, and lets them go or stays to keep them.
#pragma once

#include <optional>

#include "engine/run_context.hpp"
#include "engine/script.hpp"

namespace dlock {

/// Runs in the process that was forked for it, to its end.  Without a script the leases are left to
/// themselves once the front has handed them out.
[[noreturn]] void keep(const RunContext& context, SupervisorEnd link, std::optional<Script> script);

}  // namespace dlock
