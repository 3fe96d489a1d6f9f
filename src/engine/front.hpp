// The process that the user started: relays signals and the exit status, and guards the supervisor.
#pragma once

#include <sys/types.h>

#include "engine/supervisor.hpp"

namespace dlock {

/// Runs until the supervisor has ended; returns dlock's exit status.  `life_of_supervisor` is
/// readable from then on, and its end raises SIGCONT in this process.  May end this process by
/// SIGINT instead, if that is what the terminal sent and what ended the command: a shell that sees
/// this stops its script, as it would have done without dlock.
int attend(const RunContext& context, FrontEnd link, pid_t supervisor,
           const Fd& life_of_supervisor);

}  // namespace dlock
