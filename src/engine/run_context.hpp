// What both processes of one run know.
#pragma once

#include <sys/types.h>

#include <functional>

#include "engine/event_log.hpp"
#include "engine/link.hpp"
#include "engine/run.hpp"
#include "engine/status_file.hpp"
#include "process/inherited.hpp"
#include "process/process_tree.hpp"

namespace dlock {

struct RunContext;

/// What a command that waits for locks asks for.
struct PairSpec {
  const BackendEntry& entry;
  const Target& target;
  const RunSpec& spec;
  StatusFile& status_file;
  Inherited& inherited;
  Owner owner;               // as others see it; the same for each lock
  Deadline started;          // the start of dlock
  int script_ended_fd = -1;  // readable: the script that waits for dlock has ended; -1: none
  /// Of `acquire`, in the launcher: hands out the grants; false: release them.
  std::function<bool(const SharedPage&)> hand_out = {};
  /// What the supervisor does; does not return.
  std::function<void(const RunContext& context, SupervisorEnd link)> supervise;
};

/// The same, and what both processes have for it.
struct RunContext : PairSpec {
  SharedPage& page;
  ProcessTree& tree;       // of the process that uses it
  pid_t launcher;          // the process that the user started
  Fd& held_by_supervisor;  // the launcher sees the supervisor's end when all copies are closed
  const EventLog& event_log;
};

}  // namespace dlock
