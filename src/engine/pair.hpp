// The two processes of a command that waits for locks: the front, which the user started, and the
// supervisor, which talks to the service.
#pragma once

#include <functional>

#include "engine/run_context.hpp"

namespace dlock {

struct PairSpec {
  const BackendEntry& entry;
  const Target& target;
  const RunSpec& spec;
  const StatusFile& status_file;
  Inherited& inherited;
  Owner owner;  // RunContext::owner
  Deadline started;
  int lives_until = -1;                                  // RunContext::lives_until
  std::function<bool(const SharedPage&)> hand_out = {};  // RunContext::hand_out
  /// What the supervisor does; does not return.
  std::function<void(const RunContext& context, SupervisorEnd link)> supervise;
};

/// Forks the supervisor, attends to it in the calling process, and returns dlock's exit status.
int run_pair(const PairSpec& pair);

}  // namespace dlock
