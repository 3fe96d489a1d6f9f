// The second of the two processes that keep a lock for a script: it does what is left to do when
// the first one, the keeper, has been killed or does not go on.
#pragma once

#include "engine/run_context.hpp"
#include "engine/script.hpp"

namespace dlock {

/// Runs, to its end, in a process that `keeper` has forked for it: until the keeper has ended while
/// no lock was kept (SharedPage::kept), or until all of the script has ended.
[[noreturn]] void guard(const RunContext& context, FrontEnd link, Script script, pid_t keeper);

}  // namespace dlock
