#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "cli/cmd.hpp"
#include "cli/lock_plan.hpp"
#include "cli/print_grants.hpp"
#include "cli/print_shell.hpp"
#include "cli/refusal.hpp"
#include "cli/values.hpp"
#include "engine/acquire.hpp"
#include "engine/describe.hpp"
#include "process/proc.hpp"
#include "util/fd.hpp"
#include "util/log.hpp"

namespace dlock::cli {
namespace {

// The order is that of the choices in the flag table.
constexpr std::array kShells{Shell::posix, Shell::fish};

// A TTL in the environment or the config file is meant for runs, which renew and release the lock.
void check_ttl(const Setting* ttl, const BackendEntry& entry) {
  if (!entry.traits.resumes) {
    refuse_usage(
        "the " + std::string(entry.name) + " backend cannot keep a lock without a " +
        "process: use --while PID (in a script: --while $$), or for --ttl another backend (see "
        "man dlock-backends)");
  }
  if (ttl != nullptr && ttl->layer == Layer::flag) return;
  refuse_usage(
      "for how long? add --ttl DURATION, after which the lock expires, or --while PID, to keep it "
      "until that process has ended (in a script: --while $$)" +
      (ttl == nullptr ? std::string()
                      : "; " + ttl->where + " is not used here: say --ttl on the command line"));
}

void refuse_flag(const Settings& settings, std::string_view name, const std::string& why) {
  const Setting* given = settings.find(name);
  if (given != nullptr && given->layer == Layer::flag) refuse(*given, why);
}

// How long the locks are kept, and what else depends on that.
void take_time(const Settings& settings, AcquireSpec& spec, RunPlan& plan) {
  const Setting* keep_while = settings.find("while");
  if (keep_while == nullptr) {
    check_ttl(settings.find("ttl"), *plan.entry);
    for (const auto* name : {"kill-after", "on-lost"}) refuse_flag(settings, name, "needs --while");
    return;
  }
  refuse_flag(settings, "ttl", "cannot be combined with --while");
  spec.keep_while = to_number(*keep_while, flag("while"));
  take_loss(settings, plan);
}

struct Form {
  std::optional<Shell> shell;  // --export
  bool json = false;
};

Form take_form(const Settings& settings) {
  const Setting* json = effective(settings, flag("json"));
  const Setting* shell = settings.find("export");
  if (shell == nullptr) return {.json = json != nullptr};
  if (json != nullptr && json->layer == Layer::flag) {
    refuse(*shell, "cannot be combined with --json");
  }
  return {.shell = kShells[to_choice(*shell, flag("export"))]};
}

std::string print(const Form& form, std::span<const Grant> grants) {
  if (form.shell) return print_shell(*form.shell, grant_variables(grants));
  return form.json ? print_grants_json(grants) : print_tokens(grants);
}

}  // namespace

int cmd_acquire(const Invocation& invocation, std::span<const BackendEntry> backends) {
  Settings settings;
  RunPlan plan = plan_locks(invocation, backends, settings);
  AcquireSpec spec;
  take_time(settings, spec, plan);
  const Form form = take_form(settings);
  spec.run = std::move(plan.spec);
  spec.run.argv = {proc::name_of(spec.keep_while.value_or(getppid()))};
  return acquire(*plan.entry, plan.target, spec, [&](std::span<const Grant> grants) {
    if (util::write_all(STDOUT_FILENO, print(form, grants))) return true;
    util::log(util::Level::error, std::string("standard output: ") + std::strerror(errno) +
                                      "; releasing " + keys_in_words(spec.run.keys));
    return false;
  });
}

}  // namespace dlock::cli
