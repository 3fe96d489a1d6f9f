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
  pid_t pid = -1;  // -1: there is no process, `error` is that of the fork
  int error = 0;   // errno of the fork or exec that failed; 0: the command runs
};

/// Forks and execs without a shell: argv byte by byte, PATH as execvp(3) searches it.  Unlike
/// execvp it does not hand a file without a known format to /bin/sh.
Spawned spawn(const CommandSpec& spec, const Inherited& inherited);

/// What `error`, with which the exec of `command` failed, means to the user.
std::string why_not_started(const std::string& command, int error);

}  // namespace dlock
