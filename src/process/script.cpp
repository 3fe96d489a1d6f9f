// Identity.  A process is signalled through a pidfd.  The pidfd is opened after the lists of the
//   parent had its number, and kept only if the process then has that parent, and the parent lives.
// Ending.  All processes are stopped first, until no more are found: a stopped process starts none,
//   and leaves no orphans.  Then SIGTERM goes to parents before their children, so that a shell
//   gets it first.  SIGKILL goes to children before their parents: a parent may be a dlock, whose
//   job must be dead before its lock is free.
// Too many.  If no descriptor is left for a process, it is signalled by its number.  While there
//   are such processes, the script has not ended.

#include "process/script.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "process/proc.hpp"
#include "process/process_tree.hpp"
#include "util/poll.hpp"
#include "util/process_title.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

using proc::send;

constexpr Millis kLookAgain{20};  // while the script is being ended
constexpr Millis kKillStuckAgain{500};
constexpr Millis kAllStop{200};
constexpr Millis kAllStopAtTheEnd{20};  // before SIGKILL, which must not come too late
constexpr Millis kStopLooksAgain{1};
constexpr Millis kChildrenEnd{20};  // then their parents are killed in any case

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
    return not_usable(
        pid,
        "dlock was not started below this process; use the pid of the script, $$; in a "
        "subshell, self=$BASHPID before $( ) (man dlock-acquire)");
  }
  if (pid == 1) {
    return not_usable(
        pid,
        "dlock could not end process 1 if the lock is lost; start the container with an "
        "init (docker run --init), or use --ttl");
  }
  if (!send(pidfd, 0)) {
    return not_usable(pid, std::string("dlock may not end this process if the lock is lost: ") +
                               std::strerror(errno));
  }
  return Script(pid, std::move(pidfd), proc::name_of(pid));
}

std::string Script::in_words() const {
  return util::clipped(name_, 80) + " (pid " + std::to_string(pid_) + ')';
}

bool Script::has_ended() const { return proc::has_ended(known_.front().pidfd); }

void Script::spare(pid_t pid) {
  if (Fd pidfd = proc::pidfd_of(pid)) spared_.push_back({pid, std::move(pidfd)});
}

bool Script::is_spared(pid_t pid) const {
  if (pid == getpid() || proc::name_of(pid).starts_with(util::kKeeperName)) return true;
  return std::any_of(spared_.begin(), spared_.end(), [&](const Known& one) {
    return one.pid == pid && !proc::has_ended(one.pidfd);
  });
}

// /proc may hide the parent of a process that it has just listed (hidepid).
void Script::note(pid_t pid, pid_t parent) {
  const bool is_known = std::any_of(known_.begin(), known_.end(), [&](const Known& one) {
    return one.pid == pid && !proc::has_ended(one.pidfd);
  });
  if (is_known || is_spared(pid)) return;
  Fd pidfd = proc::pidfd_of(pid);
  const bool is_scarce = !pidfd && errno != ESRCH;
  if ((!pidfd && !is_scarce) || proc::parent_of(pid).value_or(parent) != parent) return;
  if (pidfd) {
    // A zombie whose parent is stopped stays in the list.
    if (!proc::has_ended(pidfd)) known_.push_back({pid, std::move(pidfd)});
    return;
  }
  is_blind_ = true;
  if (sends_ != 0) ::kill(pid, sends_);
}

// True if it has found new processes.
bool Script::find_more() {
  is_blind_ = false;
  known_.erase(std::remove_if(known_.begin() + 1, known_.end(),
                              [](const Known& one) { return proc::has_ended(one.pidfd); }),
               known_.end());
  const std::size_t before = known_.size();
  std::vector<pid_t> children;
  for (std::size_t i = 0; i < known_.size(); ++i) {
    const pid_t parent = known_[i].pid;
    children.clear();
    proc::read_children(parent, [&](pid_t pid) { children.push_back(pid); });
    if (proc::has_ended(known_[i].pidfd)) continue;  // they may be those of another process
    for (const pid_t pid : children) note(pid, parent);
  }
  return known_.size() > before;
}

bool Script::all_are_stopped() const {
  return std::ranges::all_of(known_, [](const Known& one) {
    return proc::has_ended(one.pidfd) || proc::is_stopped(one.pid);
  });
}

// Until a search finds nothing while all stand still.  A fork that was under way when SIGSTOP came
// adds a child before the parent stops, which takes milliseconds for a large process.  `until`: a
// process that may not be signalled, or that sleeps in the kernel, does not stop.
void Script::stop_all(Deadline until) {
  sends_ = SIGSTOP;
  for (bool complete = false; !complete && Clock::now() < until;) {
    for (const Known& one : known_) send(one.pidfd, SIGSTOP);
    const bool are_stopped = all_are_stopped();
    complete = !find_more() && are_stopped;
    if (!are_stopped) util::wait_readable(-1, after(Clock::now(), kStopLooksAgain));
  }
}

void Script::kill_all() {
  stop_all(after(Clock::now(), kAllStopAtTheEnd));
  sends_ = SIGKILL;
  (void)find_more();
  const Deadline until = after(Clock::now(), kChildrenEnd);
  for (auto one = known_.rbegin(); one != known_.rend(); ++one) {
    send(one->pidfd, SIGKILL);
    util::wait_readable(one->pidfd.get(), until);
  }
}

bool Script::all_have_ended() const {
  return !is_blind_ && std::all_of(known_.begin(), known_.end(),
                                   [](const Known& one) { return proc::has_ended(one.pidfd); });
}

int Script::end(Deadline kill_at, Deadline now) {
  if (!is_ending_ && kill_at > now) {
    stop_all(std::min(after(now, kAllStop), kill_at));
    for (const Known& one : known_) send(one.pidfd, SIGTERM);
    for (const Known& one : known_) send(one.pidfd, SIGCONT);
    for (const int sig : {SIGTERM, SIGCONT}) {  // those without a pidfd
      sends_ = sig;
      if (is_blind_) (void)find_more();
    }
  }
  is_ending_ = true;
  kill_at_ = std::min(kill_at_, kill_at);
  return kill_at > now ? SIGTERM : SIGKILL;
}

// Cleaning up after SIGTERM may take new processes: they are left alone until kill_at_.
bool Script::advance(Deadline now) {
  if (!is_ending_) return has_ended();
  sends_ = 0;
  (void)find_more();
  if (now >= kill_at_ && !all_have_ended()) kill_all();
  if (all_have_ended()) return true;
  if (stuck_.empty() && now >= after(kill_at_, kStuckAfter)) {
    stuck_ = in_words() +
             ", or a process below it, has survived SIGKILL, or may not be killed by this user";
  }
  return false;
}

Deadline Script::next_deadline(Deadline now) const {
  if (!is_ending_) return kNever;
  return after(now, stuck_.empty() ? kLookAgain : kKillStuckAgain);
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace dlock
