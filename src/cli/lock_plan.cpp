#include "cli/lock_plan.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "cli/layers.hpp"
#include "cli/refusal.hpp"
#include "cli/select_backend.hpp"
#include "cli/values.hpp"
#include "core/key.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

// The order is that of the choices in the flag table.
constexpr std::array kOnLost{OnLost::term, OnLost::kill, OnLost::ignore};
constexpr std::array kLeftovers{Leftovers::ignore, Leftovers::wait, Leftovers::kill};

void take_mode(const Settings& settings, RunPlan& plan) {
  const Traits& traits = plan.entry->traits;
  const std::string backend = "the " + std::string(plan.entry->name) + " backend has no ";
  if (const Setting* shared = effective(settings, flag("shared"))) {
    plan.spec.mode = Mode::shared;
    if (!traits.shared) refuse_usage(shared->where + ": " + backend + "shared locks");
  }
  if (const Setting* slots = effective(settings, flag("slots"))) {
    plan.spec.mode = Mode::slots;
    plan.spec.slots = static_cast<unsigned>(to_number(*slots, flag("slots")));
    if (!traits.slots) refuse_usage(slots->where + ": " + backend + "slots");
  }
}

void take_times(const Settings& settings, RunSpec& spec) {
  if (effective(settings, flag("nonblock")) != nullptr) spec.wait = Millis{0};
  if (const Setting* wait = effective(settings, flag("wait"))) {
    spec.wait = to_duration(*wait, flag("wait"));
  }
  if (const Setting* ttl = settings.find("ttl")) spec.ttl = to_duration(*ttl, flag("ttl"));
  spec.kill_after = default_kill_after(spec.ttl);
}

void take_kill_after(const Settings& settings, RunPlan& plan) {
  const Setting* kill_after = settings.find("kill-after");
  if (kill_after == nullptr) return;
  RunSpec& spec = plan.spec;
  spec.kill_after_by_ttl = false;
  spec.kill_after = to_duration(*kill_after, flag("kill-after"));
  if (spec.kill_after * 2 < spec.ttl) return;
  if (plan.entry->traits.ends_on == Traits::EndsOn::process_exit) return;  // there is no ttl
  const Setting* ttl = settings.find("ttl");
  const std::string why = "must be less than half of the TTL, which is " +
                          util::format_duration(spec.ttl) +
                          (ttl == nullptr ? "" : " (" + ttl->where + ")");
  const bool from_file = kill_after->from_file() && (ttl == nullptr || ttl->from_file());
  throw Refusal(from_file ? exit_status::kConfig : exit_status::kUsage,
                kill_after->where + ": " + why);
}

void take_hold(const Settings& settings, RunSpec& spec) {
  if (const Setting* max_hold = settings.find("max-hold")) {
    const Millis limit = to_duration(*max_hold, flag("max-hold"));
    if (limit > Millis{0}) spec.max_hold = limit;
  }
  if (const Setting* min_hold = settings.find("min-hold")) {
    spec.min_hold = to_duration(*min_hold, flag("min-hold"));
  }
}

// A command that takes two of them may wait for itself.
void check_keys_are_locks(const RunPlan& plan) {
  if (plan.spec.keys.size() == 1 || plan.entry->has_one_lock == nullptr) return;
  const std::vector<Target>& shards = plan.target.shards;
  if (shards.empty() ? plan.entry->has_one_lock(plan.target)
                     : std::any_of(shards.begin(), shards.end(), plan.entry->has_one_lock)) {
    refuse_usage("--key is given " + std::to_string(plan.spec.keys.size()) +
                 " times, but with this URL all keys are one lock: give one");
  }
}

}  // namespace

std::vector<std::string> take_keys(const Settings& settings, const Command& command) {
  const std::string name(command.name);
  const Setting* given = settings.find("key");
  if (given == nullptr) {
    refuse_usage("--key is missing: dlock " + name + " --key NAME" +
                 (command.wraps ? " -- COMMAND" : "") + "; see: dlock help " + name);
  }
  if (given->values.size() > kMostKeys) {
    refuse_usage("--key is given " + std::to_string(given->values.size()) + " times; the most is " +
                 std::to_string(kMostKeys));
  }
  std::vector<std::string> keys;
  for (const std::string& key : given->values) {
    if (auto ok = check_key(key); !ok) refuse(*given, ok.error().message);
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) {
      refuse_usage("--key " + util::in_quotes(key) + " is given twice");
    }
    keys.push_back(key);
  }
  return keys;
}

RunPlan plan_locks(const Invocation& invocation, std::span<const BackendEntry> backends,
                   Settings& settings) {
  settings = given_settings(invocation);
  set_log_from(settings);  // for what may be wrong with the config file
  RunPlan plan;
  plan.spec.keys = take_keys(settings, *invocation.command);
  const auto config = load_config(settings, *invocation.command);
  Selection selection = select_backend(settings, config, backends);
  plan.entry = selection.entry;
  plan.target = std::move(selection.target);
  plan.by_default = selection.by_default;
  check_keys_are_locks(plan);
  take_mode(settings, plan);
  take_times(settings, plan.spec);
  if (const Setting* label = settings.find("label"); label != nullptr && !label->text().empty()) {
    plan.spec.label = to_note(*label);
  }
  const Setting* event_log = settings.find("event-log");
  if (event_log != nullptr && !event_log->text().empty()) {
    plan.spec.event_log = event_log->text();
    if (event_log->layer != Layer::flag && !event_log->text().starts_with('/')) {
      refuse(*event_log, "is not an absolute path");
    }
  }
  return plan;
}

void take_loss(const Settings& settings, RunPlan& plan) {
  take_kill_after(settings, plan);
  if (const Setting* on_lost = settings.find("on-lost")) {
    plan.spec.on_lost = kOnLost[to_choice(*on_lost, flag("on-lost"))];
  }
}

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

}  // namespace dlock::cli
