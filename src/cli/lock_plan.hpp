// The locks to acquire, and how: of `dlock run`, `once` and `acquire`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/parse.hpp"
#include "core/backend.hpp"
#include "core/settings.hpp"
#include "engine/run.hpp"

namespace dlock::cli {

struct RunPlan {
  const BackendEntry* entry = nullptr;
  Target target;
  bool by_default = false;  // nobody has named the backend
  RunSpec spec;
};

/// The keys that the command line names: at least one, each once.  Throws Refusal.
std::vector<std::string> take_keys(const Settings& settings, const Command& command);

/// Reads environment and config file into `settings`, sets the log, and checks the lock options but
/// those of take_loss().  argv is left empty.  Throws Refusal.
RunPlan plan_locks(const Invocation& invocation, std::span<const BackendEntry> backends,
                   Settings& settings);

/// --kill-after and --on-lost: what happens to the command or the script if a lock is lost.
void take_loss(const Settings& settings, RunPlan& plan);

/// plan_locks() and take_loss(), and the rest of the options of `dlock run`.  Checks everything
/// that can be checked before anything is started.  Throws Refusal.
RunPlan plan_run(const Invocation& invocation, std::span<const BackendEntry> backends,
                 Settings& settings);

}  // namespace dlock::cli
