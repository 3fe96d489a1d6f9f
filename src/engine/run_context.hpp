// What both processes of one run know.
#pragma once

#include <sys/types.h>

#include <functional>

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
  ProcessTree& tree;       // of the process that uses it
  const Owner& owner;      // what is the same for each lock: whom others are shown
  pid_t front = 0;         // the process that the user started
  Deadline started;        // when dlock was
  Fd& held_by_supervisor;  // what else has it keeps the front from seeing the supervisor's end
  int lives_until = -1;    // readable: whoever waits for this dlock is gone; -1: nobody says
  /// Of `acquire`, in the front: hands out what was granted; false: give it back.
  std::function<bool(const SharedPage&)> hand_out = {};
};

}  // namespace dlock
