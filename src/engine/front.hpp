// The process that the user started: relays signals and the exit status, and guards the supervisor.
#pragma once

#include <sys/types.h>

#include "engine/supervisor.hpp"

namespace dlock {

/// Runs until the supervisor has ended; returns dlock's exit status.  May end this process by
/// SIGINT instead, if that is what the terminal sent and what ended the command: a shell that sees
/// this stops its script, as it would have done without dlock.
int attend(const RunContext& context, FrontEnd link, pid_t supervisor);

}  // namespace dlock
