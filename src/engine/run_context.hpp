// What both processes of one run know.
#pragma once

#include <sys/types.h>

#include "engine/inherited.hpp"
#include "engine/link.hpp"
#include "engine/process_tree.hpp"
#include "engine/run.hpp"
#include "engine/status_file.hpp"

namespace dlock {

struct RunContext {
  const BackendEntry& entry;
  const Target& target;
  const RunSpec& spec;
  Inherited& inherited;
  const StatusFile& status_file;
  SharedPage& page;
  ProcessTree& tree;  // of the process that uses it
  pid_t front = 0;    // the process that the user started; the pid in the owner record
  Deadline started;   // when dlock was
};

}  // namespace dlock
