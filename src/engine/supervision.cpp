#include "engine/supervision.hpp"

#include <signal.h>

#include <algorithm>

#include "engine/describe.hpp"
#include "engine/run_events.hpp"
#include "util/duration.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock {

using util::in_quotes;
using util::Level;

std::string launcher_was_suspended() {
  return "this dlock was suspended (Ctrl-Z, SIGSTOP) when the lock was granted, and did not resume "
         "within " +
         util::format_duration(kLauncherAnswers);
}

void note_grant(const RunContext& context, const HeldLocks& locks, Margins margins) {
  context.page.fence = locks.find(context.spec.keys.front())->fence().value_or(0);
  context.page.granted_at = locks.granted_at().time_since_epoch().count();
  context.page.kill_after = margins.kill_after.count();
  context.page.granted = true;
}

void end_after_loss(const RunContext& context, const HeldLocks::Loss& loss, bool is_first,
                    Margins margins, Ending& job, Deadline now) {
  note_loss(context, loss.key);
  const std::string message = "lost " + in_quotes(loss.key) + ": " + loss.error.message;
  if (context.spec.on_lost == OnLost::ignore) {
    return util::log(Level::error, message + "; " + job.in_words() +
                                       " goes on without the lock, as --on-lost ignore asks");
  }
  const Millis patience = context.spec.on_lost == OnLost::kill ? Millis{0} : margins.kill_after;
  const Deadline kill_at =
      std::min(after(now, patience), margins.kill_at(context.page.lease_end()));
  const int signal = job.end(kill_at, now);
  if (is_first) log_ending(context, signal, "lost");
  util::log(Level::error, is_first ? message + "; ending " + job.in_words() : message);
}

std::optional<Error> say_lost_before_the_end(const RunContext& context,
                                             const std::vector<HeldLocks::Loss>& failures,
                                             const std::string& job) {
  std::optional<Error> last;
  for (const auto& [key, error] : failures) {
    if (error.code != Errc::lost) continue;
    note_loss(context, key);
    util::log(Level::error,
              "lost " + in_quotes(key) + " before " + job + " had ended: " + error.message);
    last = error;
  }
  return last;
}

void StuckReport::say_if_stuck(const RunContext& context, const Ending& job,
                               std::span<const std::string> lost) {
  if (is_said_ || job.stuck().empty()) return;
  is_said_ = true;
  util::log(Level::error,
            job.stuck() + (lost.empty() ? "; keeping " + keys_in_words(context.spec.keys) +
                                              " until it has ended"
                                        : "; another holder can have " + keys_in_words(lost) +
                                              " before it has ended"));
}

}  // namespace dlock
