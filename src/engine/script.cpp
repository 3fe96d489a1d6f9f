// Who.     A number is trusted only while a pidfd keeps it from being used again: the pidfd is
//          opened first, and what the process is asked after that.
// Ending.  Parents are signalled before their children, so that a shell hears of it first.  To kill
//          all of it, it is stopped first, until no more is found: what is stopped starts nothing.
//          Then children die before their parents: one may be a dlock, whose job must be dead
//          before its lock is free.

#include "engine/script.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/proc.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

constexpr Millis kKillAgain{20};
constexpr Millis kChildrenEnd{20};  // before their parents are killed all the same

bool send(const Fd& pidfd, int sig) {
  return syscall(SYS_pidfd_send_signal, pidfd.get(), sig, nullptr, 0) == 0;
}

Error not_usable(pid_t pid, const std::string& why) {
  return {Errc::invalid, "--while " + std::to_string(pid) + ": " + why};
}

}  // namespace

Script::Script(pid_t pid, Fd pidfd, std::string name) : pid_(pid), name_(std::move(name)) {
  known_.push_back({pid, std::move(pidfd)});
}

Result<Script> Script::find(pid_t pid) {
  Fd pidfd = pid > 0 ? proc::pidfd_of(pid) : Fd();
  if (!pidfd) {
    if (pid > 0 && errno != ESRCH && errno != EINVAL) {
      return not_usable(pid, std::string("pidfd_open: ") + std::strerror(errno));
    }
    return not_usable(pid, "there is no such process");
  }
  const Below above = above_us(pid);
  if (above == Below::unknown) {
    return not_usable(pid, "/proc does not show whether this is an ancestor of dlock");
  }
  if (above == Below::no || pid == getpid()) {
    return not_usable(pid,
                      "this process is no ancestor of dlock; use the pid of the script itself, "
                      "which is $$ in a shell");
  }
  if (!send(pidfd, 0)) {
    return not_usable(pid, std::string("dlock may not end this process if the lock is lost: ") +
                               std::strerror(errno));
  }
  return Script(pid, std::move(pidfd), proc::name_of(pid));
}

std::string Script::in_words() const {
  const std::string quoted = util::in_quotes(name_);
  return quoted.substr(1, quoted.size() - 2) + " (pid " + std::to_string(pid_) + ')';
}

bool Script::has_ended() const { return proc::has_ended(known_.front().pidfd); }

void Script::spare(pid_t pid) {
  if (Fd pidfd = proc::pidfd_of(pid)) spared_.push_back({pid, std::move(pidfd)});
}

bool Script::is_spared(pid_t pid) const {
  if (pid == getpid()) return true;
  return std::any_of(spared_.begin(), spared_.end(), [&](const Known& one) {
    return one.pid == pid && !proc::has_ended(one.pidfd);
  });
}

void Script::note(pid_t pid, pid_t parent) {
  const bool is_known = std::any_of(known_.begin(), known_.end(), [&](const Known& one) {
    return one.pid == pid && !proc::has_ended(one.pidfd);
  });
  if (is_known || is_spared(pid)) return;
  Fd pidfd = proc::pidfd_of(pid);
  if (pidfd && proc::parent_of(pid) == parent) known_.push_back({pid, std::move(pidfd)});
}

// True if there were some that were not known.
bool Script::find_more() {
  const std::size_t before = known_.size();
  for (std::size_t i = 0; i < known_.size(); ++i) {
    if (proc::has_ended(known_[i].pidfd)) continue;
    const pid_t parent = known_[i].pid;
    if (proc::has_children()) {
      proc::read_children(parent, [&](pid_t pid) { note(pid, parent); });
    } else {
      proc::read_directory(proc::path_of("/proc"), [&](pid_t pid) {
        if (proc::parent_of(pid) == parent) note(pid, parent);
      });
    }
  }
  return known_.size() > before;
}

void Script::signal(int sig) {
  find_more();
  for (const Known& one : known_) send(one.pidfd, sig);
}

// Twice nothing: a fork that was under way when the signal came is over by then.
void Script::kill() {
  for (int quiet = 0; quiet < 2; quiet = find_more() ? 0 : quiet + 1) {
    for (const Known& one : known_) send(one.pidfd, SIGSTOP);
  }
  const Deadline until = after(Clock::now(), kChildrenEnd);
  for (auto one = known_.rbegin(); one != known_.rend(); ++one) {
    send(one->pidfd, SIGKILL);
    util::wait_readable(one->pidfd.get(), until);
  }
}

bool Script::all_have_ended() const {
  return std::all_of(known_.begin(), known_.end(),
                     [](const Known& one) { return proc::has_ended(one.pidfd); });
}

void Script::end(Deadline kill_at, Deadline now) {
  if (!is_ending_ && kill_at > now) {
    signal(SIGTERM);
    signal(SIGCONT);  // a stopped process would not hear it before the SIGKILL
  }
  is_ending_ = true;
  kill_at_ = std::min(kill_at_, kill_at);
}

bool Script::finished(Deadline now) {
  if (!is_ending_) return has_ended();
  if (all_have_ended()) return true;
  if (now < kill_at_) return false;
  kill();
  return all_have_ended();
}

Deadline Script::next_deadline(Deadline now) const {
  if (!is_ending_) return kNever;
  // Of the others nobody tells: a look now and then, not to hold the lock for longer than needed.
  return std::min(std::max(kill_at_, after(now, kKillAgain)), after(now, kKillAgain * 5));
}

}  // namespace dlock
