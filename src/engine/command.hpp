// Starting the user's command in the world that the user made for it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "engine/inherited.hpp"
#include "util/fd.hpp"

namespace dlock {

struct CommandSpec {
  std::vector<std::string> argv;
  /// DLOCK_* variables to set; those with no value are removed.
  std::vector<std::pair<std::string, std::string>> environment;
};

struct Spawned {
  pid_t pid = -1;  // -1: fork failed, errno is set
  /// At its end once the command runs; holds an int, the errno of exec, if it could not be started.
  Fd exec_result;
};

/// Forks and execs without a shell: argv byte by byte, PATH as execvp(3) searches it.  Unlike
/// execvp it does not hand a file without a known format to /bin/sh.
Spawned spawn(const CommandSpec& spec, const Inherited& inherited);

}  // namespace dlock
