// Starting the user's command in the world that the user made for it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "process/inherited.hpp"

namespace dlock {

struct CommandSpec {
  std::vector<std::string> argv;
  /// DLOCK_* variables to set; those with no value are removed.
  std::vector<std::pair<std::string, std::string>> environment;
};

struct Spawned {
  pid_t pid = -1;  // -1: there is no process; `error` says why
  int error = 0;   // errno of the fork or exec that failed; 0: the command runs
};

/// Forks and execs as execvp(3): it searches PATH, and runs a file without a known format with
/// /bin/sh. argv is passed on byte by byte.
Spawned spawn(const CommandSpec& spec, const Inherited& inherited);

/// Why the exec of `command` failed with `error`, in words for the user.
std::string why_not_started(const std::string& command, int error);

}  // namespace dlock
