#include "engine/job.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

namespace dlock {
namespace {

// SIGKILL makes orphans, which become our children and are found by the next walk.
constexpr Millis kKillAgain{20};
constexpr Millis kKillStuckAgain{500};
constexpr Millis kLookAgain{1'000};

}  // namespace

bool asks_to_end(int sig) {
  return sig == SIGTERM || sig == SIGINT || sig == SIGHUP || sig == SIGQUIT;
}

void Job::start(const CommandSpec& spec, const Inherited& inherited, Millis kill_after) {
  kill_after_ = kill_after;
  const Spawned spawned = spawn(spec, inherited);
  name_ = spec.argv.front();
  pid_ = spawned.pid;
  start_error_ = spawned.error;
}

std::string Job::in_words() const { return name_ + " (pid " + std::to_string(pid_) + ')'; }

void Job::signal(int sig, bool from_terminal) {
  if (asks_to_end(sig)) asked_to_end_by_ = sig;
  if (from_terminal) return;
  if (asks_to_end(sig) || status_) {
    tree_.signal(sig);
  } else {
    kill(pid_, sig);  // our child and not reaped: the number is still its own
  }
}

int Job::end(Deadline kill_at, Deadline now) {
  if (!ending_ && started() && kill_at > now) {
    tree_.signal(SIGTERM);
    tree_.signal(SIGCONT);  // a stopped process would not hear it before the SIGKILL
  }
  ending_ = true;
  kill_at_ = std::min(kill_at_, kill_at);
  return kill_at > now ? SIGTERM : SIGKILL;
}

bool Job::advance(Deadline now) {
  if (ending_ && now >= kill_at_) {
    const Signalled killed = tree_.signal(SIGKILL);
    if (stuck_.empty() && now >= after(kill_at_, kStuckAfter)) stuck_ = why_alive(killed);
  }
  const Reaped reaped = tree_.reap(status_ ? -1 : pid_);
  if (reaped.pid > 0) status_ = reaped.status;
  gone_ = reaped.none_left;
  if (gone_) return true;
  if (!status_) return false;
  // Keepers keep the locks of scripts around this run, which may wait for it.
  if (leftovers_ != Leftovers::ignore || ending_) gone_ = tree_.only_keepers_are_left();
  if (gone_ || ending_) return gone_;
  if (WIFSIGNALED(*status_) || asked_to_end_by_ != 0 || leftovers_ == Leftovers::kill) {
    end(after(now, kill_after_), now);
    return false;
  }
  return leftovers_ == Leftovers::ignore;
}

// No event reports that a process has become a keeper.
Deadline Job::next_deadline(Deadline now) const {
  if (!ending_) return status_ ? after(now, kLookAgain) : kNever;
  if (now < kill_at_) return kill_at_;
  return after(now, stuck_.empty() ? kKillAgain : kKillStuckAgain);
}

}  // namespace dlock
