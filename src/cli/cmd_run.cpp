#include "cli/cmd.hpp"
#include "cli/lock_plan.hpp"

namespace dlock::cli {

int cmd_run(const Invocation& invocation, std::span<const BackendEntry> backends) {
  Settings settings;
  const RunPlan plan = plan_run(invocation, backends, settings);
  return run(*plan.entry, plan.target, plan.spec);
}

}  // namespace dlock::cli
