// What each command does.  A cmd_*() returns the exit status, and throws Refusal for a command line
// or a config file that is wrong.
#pragma once

#include <span>

#include "cli/parse.hpp"
#include "core/backend.hpp"

namespace dlock::cli {

int cmd_acquire(const Invocation& invocation, std::span<const BackendEntry> backends);
int cmd_backends(const Invocation& invocation, std::span<const BackendEntry> backends);
int cmd_doctor(const Invocation& invocation, std::span<const BackendEntry> backends);
int cmd_force_release(const Invocation& invocation, std::span<const BackendEntry> backends);
int cmd_help(const Invocation& invocation, std::span<const BackendEntry> backends);
int cmd_id(const Invocation& invocation, std::span<const BackendEntry> backends);
int cmd_list(const Invocation& invocation, std::span<const BackendEntry> backends);
int cmd_once(const Invocation& invocation, std::span<const BackendEntry> backends);
int cmd_release(const Invocation& invocation, std::span<const BackendEntry> backends);
int cmd_renew(const Invocation& invocation, std::span<const BackendEntry> backends);
int cmd_run(const Invocation& invocation, std::span<const BackendEntry> backends);
int cmd_show(const Invocation& invocation, std::span<const BackendEntry> backends);
int cmd_version(const Invocation& invocation, std::span<const BackendEntry> backends);
int cmd_watch(const Invocation& invocation, std::span<const BackendEntry> backends);

/// dlock complete -- WORD...
///
/// The scripts in completions/ call this.  Each WORD is one behind `dlock`, without its quotes; the
/// last one is the part of a word before the cursor, and may be empty.  The answer is one of
///   VALUE<TAB>DESCRIPTION   on each line; VALUE is a whole word, not quoted, that begins with the
///                           last WORD
///   <TAB>files              the shell completes a file name: behind the = of --config=FILE
///   <TAB>command N          WORD number N, from 1, begins the user's own command
/// or nothing.  It comes within 200 ms, or nothing does: the status is 0 then, too.  Neither a
/// server nor a file system that is silent can hold up a shell.  Writes nothing to stderr.
int cmd_complete(const Invocation& invocation, std::span<const BackendEntry> backends);

}  // namespace dlock::cli
