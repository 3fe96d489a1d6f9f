// The processes of dlock: what each does, and when it ends.
//
// The launcher is the process that the user started.  It relays signals and the exit status, and
// watches over the supervisor, which talks to the service.
//
// dlock run: the supervisor starts the command, renews the leases and releases them.
// dlock acquire --while: the supervisor stays in the background and keeps the locks for a script
// that exists already, so it is called the keeper.  The launcher hands out the lock ids and
// returns; a third process, the guard, watches over the keeper.
// dlock acquire --ttl: launcher and supervisor end, and nobody renews the leases.
//
// Who ends the job before another holder can have the lock:
//   a lock is lost                  supervisor or keeper, end_after_loss() in supervision.cpp:
//                                   SIGTERM, and SIGKILL in time
//   the launcher is killed          supervisor, read_link(): SIGKILL
//   the supervisor is killed, or    launcher, end_tree(): SIGKILL until nothing is left; the kernel
//   is stopped and the lease ends   kills the command itself at once (PR_SET_PDEATHSIG)
//   the keeper is killed            guard, end_script(): SIGTERM, and SIGKILL in time
//   the keeper is stopped, and the  guard, end_script(): SIGKILL
//   lease ends
//   the guard is killed             keeper, look_at_guard(): SIGTERM, and SIGKILL in time
// --on-lost kill sends no SIGTERM after a loss; with ignore, a loss and a process that is stopped
// end nothing.
#pragma once

#include <sys/types.h>

#include "engine/run_context.hpp"
#include "process/script.hpp"

namespace dlock {

/// Forks the supervisor, attends to it in the calling process, and returns dlock's exit status.
int run_pair(const PairSpec& pair);

/// The launcher: runs until the supervisor has ended; returns dlock's exit status.
/// `life_of_supervisor` is readable from then on, and its end raises SIGCONT in this process.  If
/// the terminal sent SIGINT and that ended the command, the launcher dies of SIGINT instead: a
/// shell that sees this stops its script, as it would without dlock.
int attend(const RunContext& context, LauncherEnd link, pid_t supervisor,
           const Fd& life_of_supervisor);

/// The supervisor of a command: acquires the locks, starts the command, watches over all.
[[noreturn]] void supervise(const RunContext& context, SupervisorEnd link) noexcept;

/// The supervisor of `dlock acquire`: acquires the locks, and stays to keep them for a script.
/// Without a script it abandons the leases once the launcher has handed them out.
[[noreturn]] void supervise_script(const RunContext& context, SupervisorEnd link,
                                   std::optional<Script> script) noexcept;

/// The second of the two processes that keep a lock for a script, forked by `keeper`: runs until
/// the keeper has ended.  If that ended while SharedPage::kept was set, or is stopped when the
/// lease ends, ends the script first.
[[noreturn]] void guard(const RunContext& context, LauncherEnd link, Script script,
                        pid_t keeper) noexcept;

}  // namespace dlock
