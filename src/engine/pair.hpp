// The two processes of a command that waits for locks: the front, which the user started, and the
// supervisor, which talks to the service.
#pragma once

#include "engine/run_context.hpp"

namespace dlock {

/// Forks the supervisor, attends to it in the calling process, and returns dlock's exit status.
int run_pair(const PairSpec& pair);

}  // namespace dlock
