#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/cmd.hpp"
#include "cli/lock_plan.hpp"
#include "cli/lock_service.hpp"
#include "cli/period.hpp"
#include "cli/refusal.hpp"
#include "cli/source.hpp"
#include "cli/values.hpp"
#include "engine/describe.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

// The order is that of the choices in the flag table.
constexpr std::array kEvery{Every::hour, Every::day, Every::week};

// A waiter that started in an earlier period must still find the done-mark of that period.
constexpr Millis kLongestWait = std::chrono::weeks{1};

// The time of --remember or --every; none if neither is given.
std::optional<Completion> take_completion(const Settings& settings) {
  if (const Setting* every = effective(settings, flag("every"))) {
    const Every unit = kEvery[to_choice(*every, flag("every"))];
    return Completion{period_of(unit, std::chrono::system_clock::now()),
                      length_of(unit) + kLongestWait};
  }
  if (const Setting* remember = effective(settings, flag("remember"))) {
    return Completion{"", to_duration(*remember, flag("remember"))};
  }
  return std::nullopt;
}

std::string only_key(const std::vector<std::string>& keys) {
  if (keys.size() > 1)
    refuse_usage("dlock once takes one --key; here are " + std::to_string(keys.size()));
  return keys.front();
}

// The done-marks that the command line means: one with --every or --remember, otherwise all of the
// key.
Result<std::vector<Mark>> find(Backend& backend, const std::string& key,
                               const std::optional<Completion>& completion, Deadline deadline) {
  auto found = backend.list_marks(key, deadline);
  if (!found) return found;
  std::erase_if(*found, [&](const Mark& mark) {
    return mark.name.key != key || (completion && mark.name.period != completion->period);
  });
  return found;
}

int reset(const Invocation& invocation, std::span<const BackendEntry> backends) {
  const LockService service(invocation, backends);
  const std::string key = only_key(take_keys(service.settings(), *invocation.command));
  const auto completion = take_completion(service.settings());
  refuse_if_forgetful(service.entry(), kForgetsJobs, backends);
  const auto backend = service.open();
  if (!backend) return service.report(backend.error());
  const auto marks = find(*backend.value(), key, completion, service.patience());
  if (!marks) return service.report(marks.error());
  bool forgot = false;
  for (const Mark& mark : marks.value()) {
    const auto gone = backend.value()->forget_mark(mark.name, service.patience());
    if (!gone) return service.report(gone.error());
    forgot = forgot || gone.value();
    if (gone.value()) util::log(util::Level::note, "forgot that " + done_in_words(mark));
  }
  if (forgot) return 0;
  const bool of_period = completion && !completion->period.empty();
  return no("nothing to forget: " + util::in_quotes(key) + " is not remembered as done" +
            (of_period ? " for " + completion->period : "") + " in " +
            backend.value()->location_of(key) + "; dlock list --done shows what is");
}

}  // namespace

int cmd_once(const Invocation& invocation, std::span<const BackendEntry> backends) {
  if (invocation.has("reset")) return reset(invocation, backends);
  Settings settings;
  RunPlan plan = plan_run(invocation, backends, settings);
  only_key(plan.spec.keys);
  const auto completion = take_completion(settings);
  if (!completion) {
    refuse_usage(
        "add --remember DURATION, for a job that is done once, or --every 1h, 1d or 1w, for one "
        "that is done once in each hour, day or week");
  }
  refuse_if_forgetful(*plan.entry, kForgetsJobs, backends);
  if (plan.by_default) {
    util::log(
        util::Level::warning,
        "no backend is named, so this is done once on this machine: other machines do not see "
        "it; -b file says that this is meant");
  }
  plan.spec.once = OnceSpec{.completion = *completion};
  if (const Setting* status = settings.find("done-exit-code")) {
    plan.spec.once->done_status = to_number(*status, flag("done-exit-code"));
  }
  return run(*plan.entry, plan.target, plan.spec);
}

}  // namespace dlock::cli
