#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/describe.hpp"
#include "engine/margins.hpp"
#include "engine/processes.hpp"
#include "engine/run_events.hpp"
#include "engine/supervision.hpp"
#include "process/proc.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"
#include "util/process_title.hpp"

namespace dlock {
namespace {

using util::Level;

class Guard {
 public:
  Guard(const RunContext& context, LauncherEnd link, Script script, pid_t keeper)
      : context_(context),
        link_(std::move(link)),
        script_(std::move(script)),
        keeper_(keeper),
        keepers_life_(proc::pidfd_of(keeper)) {
    script_.spare(keeper);
  }

  void run() {
    for (;;) {
      while (link_.receive(&lock_fds_)) {
      }
      if (link_.closed()) {
        if (context_.page.kept) end_script("was killed");
        return;
      }
      const Deadline last = last_moment();
      if (Clock::now() >= last) {
        if (keepers_life_) proc::send(keepers_life_, SIGKILL);
        return end_script("did not renew the lock in time");
      }
      std::array<pollfd, 1> fds{{{link_.fd(), POLLIN, 0}}};
      util::poll(fds, last);
    }
  }

 private:
  Margins margins() const { return {Millis{context_.page.kill_after}}; }
  Deadline last_moment() const {
    if (!context_.page.guarded) return kNever;
    return margins().launcher_kills_at(context_.page.lease_end());
  }
  void end_script(const std::string& what_keeper_did);

  const RunContext& context_;
  LauncherEnd link_;
  Script script_;
  const pid_t keeper_;
  const Fd keepers_life_;
  std::vector<Fd> lock_fds_;
};

// Only when all of the script has ended may the lock become free, or expire by itself.
void Guard::end_script(const std::string& what_keeper_did) {
  const Deadline now = Clock::now();
  const Deadline kill_at = margins().kill_at(context_.page.lease_end());
  const int signal = script_.end(std::min(after(now, margins().kill_after), kill_at), now);
  log_ending(context_, signal, "killed");
  for (const std::string& key : context_.spec.keys) note_loss(context_, key);
  util::log(Level::error, "lost " + keys_in_words(context_.spec.keys) +
                              ": the process that kept it (pid " + std::to_string(keeper_) + ") " +
                              what_keeper_did + "; ending " + script_.in_words());
  StuckReport stuck;
  for (Deadline at = now; !script_.advance(at); at = Clock::now()) {
    stuck.say_if_stuck(context_, script_, context_.spec.keys);
    util::poll({}, script_.next_deadline(at));
  }
}

}  // namespace

void guard(const RunContext& context, LauncherEnd link, Script script, pid_t keeper) noexcept {
  util::set_process_title(std::string(util::kKeeperName) + " 2 for pid " +
                          std::to_string(script.pid()));
  prctl(PR_SET_PDEATHSIG, SIGCONT);  // a stopped guard wakes up when the keeper is killed
  raise_descriptor_limit();
  Guard(context, std::move(link), std::move(script), keeper).run();
  // Writes the last events that the keeper has not written.
  if (context.page.kept || context.page.left_behind) {
    log_end(context, {.killed = true, .is_returned = false});
  }
  util::log_flush();
  _exit(0);
}

}  // namespace dlock
