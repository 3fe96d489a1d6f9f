// How the run of a command ends: what its exit status, its status file and its last message say.
#pragma once

#include <optional>

#include "engine/held_locks.hpp"
#include "engine/job.hpp"
#include "engine/outcome.hpp"
#include "engine/run_context.hpp"

namespace dlock {

/// Why the run ended, besides the end of its job.
struct RunEnd {
  std::optional<HeldLocks::Loss> loss;
  bool launcher_gone = false;
  bool max_hold_over = false;
  int refused_by = 0;              // a signal that came before the command was started
  std::optional<Outcome> failure;  // why else the command was not started
};

Outcome outcome_of(const RunContext& context, const Job& job, const RunEnd& end);

/// Logs what was not logged when it happened.
void report(const RunContext& context, const Job& job, const RunEnd& end, const Outcome& outcome);

/// The command has ended, and some of its processes have not: says which.  `keeps_lock`: the lock
/// is held until the nested runs among them have ended.
void name_leftovers(const RunContext& context, bool keeps_lock);

}  // namespace dlock
