#include "cli/cmd_run.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "cli/layers.hpp"
#include "cli/refusal.hpp"
#include "cli/select_backend.hpp"
#include "cli/values.hpp"
#include "core/key.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

// In the order of the choices in the flag table.
constexpr std::array kOnLost{OnLost::term, OnLost::kill, OnLost::ignore};
constexpr std::array kLeftovers{Leftovers::ignore, Leftovers::wait, Leftovers::kill};

void take_keys(const Settings& settings, RunSpec& spec) {
  const Setting* keys = settings.find("key");
  if (keys == nullptr) {
    refuse_usage("which lock? name it: dlock run --key NAME -- COMMAND; see: dlock help run");
  }
  if (keys->values.size() > kMostKeys) {
    refuse_usage("--key is given " + std::to_string(keys->values.size()) +
                 " times; a run takes at most " + std::to_string(kMostKeys) + " locks");
  }
  for (const std::string& key : keys->values) {
    if (auto ok = check_key(key); !ok) refuse(*keys, ok.error().message);
    if (std::find(spec.keys.begin(), spec.keys.end(), key) != spec.keys.end()) {
      refuse_usage("--key " + util::in_quotes(key) + " is given twice");
    }
    spec.keys.push_back(key);
  }
}

void take_mode(const Settings& settings, const BackendEntry& entry, RunSpec& spec) {
  const std::string backend = "the " + std::string(entry.name) + " backend has no ";
  if (const Setting* shared = effective(settings, flag("shared"))) {
    spec.mode = Mode::shared;
    if (!entry.traits.shared) refuse_usage(shared->where + ": " + backend + "shared locks");
  }
  if (const Setting* slots = effective(settings, flag("slots"))) {
    spec.mode = Mode::slots;
    spec.slots = static_cast<unsigned>(to_number(*slots, flag("slots")));
    if (!entry.traits.slots) refuse_usage(slots->where + ": " + backend + "slots");
  }
}

void take_kill_after(const Settings& settings, const BackendEntry& entry, RunSpec& spec) {
  const Setting* kill_after = settings.find("kill-after");
  if (kill_after == nullptr) {
    spec.kill_after = default_kill_after(spec.ttl);
    return;
  }
  spec.kill_after_by_ttl = false;
  spec.kill_after = to_duration(*kill_after, flag("kill-after"));
  if (spec.kill_after * 2 < spec.ttl) return;
  if (entry.traits.ends_on == Traits::EndsOn::process_exit) return;  // there is no ttl
  const Setting* ttl = settings.find("ttl");
  const std::string why = "must be less than half of the ttl, which is " +
                          util::format_duration(spec.ttl) +
                          (ttl == nullptr ? "" : " (" + ttl->where + ")");
  const bool from_file = kill_after->from_file() && (ttl == nullptr || ttl->from_file());
  throw Refusal(from_file ? exit_status::kConfig : exit_status::kUsage,
                kill_after->where + ": " + why);
}

void take_times(const Settings& settings, const BackendEntry& entry, RunSpec& spec) {
  if (effective(settings, flag("nonblock")) != nullptr) spec.wait = Millis{0};
  if (const Setting* wait = effective(settings, flag("wait"))) {
    spec.wait = to_duration(*wait, flag("wait"));
  }
  if (const Setting* ttl = settings.find("ttl")) {
    spec.ttl = to_duration(*ttl, flag("ttl"));
  }
  take_kill_after(settings, entry, spec);
  if (const Setting* max_hold = settings.find("max-hold")) {
    const Millis limit = to_duration(*max_hold, flag("max-hold"));
    if (limit > Millis{0}) spec.max_hold = limit;
  }
  if (const Setting* min_hold = settings.find("min-hold")) {
    spec.min_hold = to_duration(*min_hold, flag("min-hold"));
  }
}

}  // namespace

RunPlan plan_run(const Invocation& invocation, std::span<const BackendEntry> backends) {
  Settings settings = given_settings(invocation);
  set_log_from(settings);  // for what may be wrong with the config file
  RunSpec spec{.argv = invocation.wrapped};
  take_keys(settings, spec);
  const auto config = load_config(settings);
  Selection selection = select_backend(settings, config, backends);

  take_mode(settings, *selection.entry, spec);
  take_times(settings, *selection.entry, spec);
  if (const Setting* label = settings.find("label"); label != nullptr && !label->text().empty()) {
    spec.label = to_note(*label);
  }
  if (const Setting* status = settings.find("conflict-exit-code")) {
    spec.conflict_status = to_number(*status, flag("conflict-exit-code"));
  }
  if (const Setting* leftovers = settings.find("leftovers")) {
    spec.leftovers = kLeftovers[to_choice(*leftovers, flag("leftovers"))];
  }
  if (const Setting* on_lost = settings.find("on-lost")) {
    spec.on_lost = kOnLost[to_choice(*on_lost, flag("on-lost"))];
  }
  if (const Setting* status_file = settings.find("status-file")) {
    spec.status_file = to_text(*status_file);
  }
  return {selection.entry, std::move(selection.target), std::move(spec)};
}

int cmd_run(const Invocation& invocation, std::span<const BackendEntry> backends) {
  const RunPlan plan = plan_run(invocation, backends);
  return run(*plan.entry, plan.target, plan.spec);
}

}  // namespace dlock::cli
