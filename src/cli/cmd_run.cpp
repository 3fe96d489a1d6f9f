#include "cli/cmd_run.hpp"

#include <array>

#include "cli/values.hpp"

namespace dlock::cli {
namespace {

// The order is that of the choices in the flag table.
constexpr std::array kLeftovers{Leftovers::ignore, Leftovers::wait, Leftovers::kill};

void take_hold(const Settings& settings, RunSpec& spec) {
  if (const Setting* max_hold = settings.find("max-hold")) {
    const Millis limit = to_duration(*max_hold, flag("max-hold"));
    if (limit > Millis{0}) spec.max_hold = limit;
  }
  if (const Setting* min_hold = settings.find("min-hold")) {
    spec.min_hold = to_duration(*min_hold, flag("min-hold"));
  }
}

}  // namespace

RunPlan plan_run(const Invocation& invocation, std::span<const BackendEntry> backends,
                 Settings& settings) {
  RunPlan plan = plan_locks(invocation, backends, settings);
  RunSpec& spec = plan.spec;
  spec.argv = invocation.wrapped;
  take_loss(settings, plan);
  take_hold(settings, spec);
  if (const Setting* status = settings.find("conflict-exit-code")) {
    spec.conflict_status = to_number(*status, flag("conflict-exit-code"));
  }
  if (const Setting* leftovers = settings.find("leftovers")) {
    spec.leftovers = kLeftovers[to_choice(*leftovers, flag("leftovers"))];
  }
  if (const Setting* status_file = settings.find("status-file")) {
    spec.status_file = to_text(*status_file);
  }
  return plan;
}

int cmd_run(const Invocation& invocation, std::span<const BackendEntry> backends) {
  Settings settings;
  const RunPlan plan = plan_run(invocation, backends, settings);
  return run(*plan.entry, plan.target, plan.spec);
}

}  // namespace dlock::cli
