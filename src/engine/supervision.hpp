// What both supervisors do: that of a command, and that of a script that exists already.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/held_locks.hpp"
#include "engine/margins.hpp"
#include "engine/run_context.hpp"
#include "process/ending.hpp"

namespace dlock {

/// A stopped launcher does not answer a grant, and others wait.  Then the locks are released.
inline constexpr Millis kLauncherAnswers{5'000};
std::string launcher_was_suspended();

/// Writes the grant to the shared page, for the launcher.
void note_grant(const RunContext& context, const HeldLocks& locks, Margins margins);

/// A lock was lost while the job runs: logs that, and ends the job before the first lease is over,
/// unless --on-lost says that it goes on without the lock.
void end_after_loss(const RunContext& context, const HeldLocks::Loss& loss, bool is_first,
                    Margins margins, Ending& job, Deadline now);

/// Logs which locks were lost before the job had ended, and returns the last of these errors.
/// `failures` are those of HeldLocks::release().
std::optional<Error> say_lost_before_the_end(const RunContext& context,
                                             const std::vector<HeldLocks::Loss>& failures,
                                             const std::string& job);

/// Logs, once, that a job which is being ended, because of a loss or otherwise, is still there.
class StuckReport {
 public:
  /// `lost`: the keys that are lost.
  void say_if_stuck(const RunContext& context, const Ending& job,
                    std::span<const std::string> lost);

 private:
  bool is_said_ = false;
};

}  // namespace dlock
