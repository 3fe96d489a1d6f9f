// What ps(1), pgrep(1) and killall(1) show as name and command line of this process.
#pragma once

#include <string>
#include <string_view>

namespace dlock::util {

/// The name of the process that holds the lock of a `dlock run`.  It has no "dlock" in it, so that
/// killing that name leaves the process that ends the job.
inline constexpr std::string_view kSupervisorName = "lock supervisor";

/// That of the two that keep the locks of a `dlock acquire --while`.
inline constexpr std::string_view kKeeperName = "lock keeper";

/// Whether `name` is that of one of these.  Any process can call itself so.
inline bool may_hold_locks(std::string_view name) {
  return name.starts_with(kSupervisorName) || name.starts_with(kKeeperName);
}

/// Notes where the command line stands.  To be called by main(), with its argv.
void note_arguments(char** argv);

/// Shows `title` instead of the command line, and its first 15 bytes as the name of this thread
/// and of those that it starts.  Without note_arguments() only the name changes.
void set_process_title(const std::string& title);

}  // namespace dlock::util
