// Finding.  /proc/PID/task/TID/children lists the children of one thread.  A walk reads the lists
//   of all threads of all processes below this one, and looks at no other process of the machine.
//   A kernel without CONFIG_PROC_CHILDREN has no such lists; there the walk takes each process
//   whose ancestors lead to this one.  Where there is no /proc, or it is that of another pid
//   namespace, waitid(2) tells for each number whether it is a child of ours.
// Ended or not.  A pidfd is readable when the last thread of its process has ended.  The state in
//   /proc does not tell that: it is Z as soon as the main thread has ended, and the other threads
//   may work on.
// Signalling.  A pid can be used again as soon as its process has been reaped.  So the order is:
//   open a pidfd, see that the process behind the number has this one among its ancestors, and
//   signal through the pidfd.
// Hiding.  A /proc mounted with hidepid (systemd: ProtectProc) shows of a process that is not
//   dumpable, such as a dlock that holds a password, only the number, in the list of its parent.
//   Such a process is signalled without a look at its ancestors.  What is below it becomes ours
//   when it dies, and is found by the next walk.
// Order.  A process of the job may be a dlock that holds another lock: its job must be dead before
//   that lock is free.  So the tree is stopped from above, and killed from below: each process when
//   its children have ended.  A process that is stopped starts no other one, and does not go on
//   when its children end.
// Ending.  Repeated walks come to an end: a killed process forks no more, and its children become
//   ours.  If there are more processes than places, the next walk finds those that remain.
// Descriptors.  A walk must work when the system has none to give, or a job outlives its lock.  So
//   some are reserved, and closed for the time of a walk.  If a thread of a client library takes
//   them then, the walk asks waitid(2), as without /proc.

#include "engine/process_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "engine/proc.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"

namespace dlock {
namespace {

using proc::below;
using proc::has_ended;
using proc::name_of;
using proc::open_to_read;
using proc::parent_of;
using proc::path_of;
using proc::pidfd_of;
using proc::read_directory;

constexpr Millis kLongestPause{20};  // between two walks that kill

constexpr Millis kWalkWaits{20};  // for the ends of processes, in one walk

constexpr pid_t kMostPids = 4'194'304;  // PID_MAX_LIMIT of 64-bit kernels

enum class Child { none, alive, ended };

Child child(idtype_t type, pid_t pid) {
  siginfo_t info{};
  constexpr int kOptions = WEXITED | WNOHANG | WNOWAIT | __WALL;
  if (waitid(type, static_cast<id_t>(pid), &info, kOptions) != 0) return Child::none;
  const bool ended =
      info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED;
  return info.si_pid != 0 && ended ? Child::ended : Child::alive;
}

// Calls `use` with each child of this process whose number is in a range.  True if that is
// progress: one has ended and waits to be reaped, or `use` says so.
template <class Use>
bool ask_for_children(pid_t first, pid_t last, Use use) {
  bool progress = false;
  for (pid_t pid = first; pid <= last; ++pid) {
    const Child found = child(P_PID, pid);
    if (found != Child::none && (use(pid) || found == Child::ended)) progress = true;
  }
  return progress;
}

// The number that the kernel gives to a process now; -1 if it makes none.  Its end raises no
// SIGCHLD, which would wake up the caller for another walk.
pid_t newest_pid() {
  const long pid = syscall(SYS_clone, 0, nullptr, nullptr, nullptr, nullptr);
  if (pid == 0) _exit(0);
  if (pid > 0) waitpid(static_cast<pid_t>(pid), nullptr, __WALL);
  return static_cast<pid_t>(pid);
}

// The same for all children, whatever /proc shows.  They have the numbers after ours, unless those
// have begun anew since: to look at all that there can be takes about a second.  So that waits
// until nothing else can be done.
template <class Use>
void ask_for_children(Use use) {
  if (child(P_ALL, 0) == Child::none) return;
  if (!ask_for_children(getpid() + 1, newest_pid(), use)) ask_for_children(1, kMostPids, use);
}

// Whether a process that was killed ends until then.  Before Linux 5.3 nothing tells.
bool ends(pid_t pid, Deadline until) {
  const Fd pidfd = pidfd_of(pid);
  return !pidfd || util::wait_readable(pidfd.get(), until);
}

// Calls `use` with a pidfd of a process that was found, if it is below us and has not ended.  No
// descriptor: the system has none left, or is Linux before 5.3.  Returns what `use` does.
template <class Use>
bool with_living(pid_t pid, Use use) {
  const Fd pidfd = pidfd_of(pid);
  const bool ended = pidfd ? has_ended(pidfd) : errno == ESRCH;
  return !ended && below_us(pid) != Below::no && use(pidfd);
}

std::string in_words(pid_t pid) {
  return name_of(pid) + " (pid " + std::to_string(pid) + "), a process of the job";
}

}  // namespace

void become_subreaper() { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

std::string why_alive(const Signalled& killed) {
  if (killed.refused == 0) return in_words(killed.living) + ", has survived SIGKILL";
  return in_words(killed.refused) + ", cannot be killed: " + std::strerror(killed.error) +
         " (kill it as root)";
}

void say_stuck(const Signalled& killed) {
  try {
    util::log(util::Level::error, why_alive(killed) +
                                      "; dlock waits for its end, and keeps the "
                                      "lock unless that has expired");
  } catch (const std::bad_alloc&) {  // it is waited for all the same
  }
}

namespace {

// True if it got the signal.
bool send(pid_t pid, int sig, Signalled& out) {
  return with_living(pid, [&](const Fd& pidfd) {
    const long sent =
        pidfd ? syscall(SYS_pidfd_send_signal, pidfd.get(), sig, nullptr, 0) : kill(pid, sig);
    if (sent == 0) {
      out.living = pid;
    } else if (errno != ESRCH) {
      out.refused = pid;
      out.error = errno;
    }
    return sent == 0;
  });
}

}  // namespace

ProcessTree::ProcessTree() { reserve(); }

void ProcessTree::reserve() {
  ready_ = true;
  for (Fd& fd : reserved_) {
    if (!fd) fd.reset(eventfd(0, EFD_CLOEXEC));
    ready_ = ready_ && fd;
  }
}

bool ProcessTree::note(pid_t pid, std::uint16_t parent) {
  if (std::find(spared_.begin(), spared_.end(), pid) != spared_.end()) {
    ++spared_seen_;
    return false;
  }
  if (found_count_ == kMostFound) return false;
  found_[found_count_++] = {.pid = pid, .parent = parent, .children = 0};
  if (parent != Found::kNone) ++found_[parent].children;
  return true;
}

void ProcessTree::note_children(pid_t pid, std::uint16_t parent) {
  proc::read_children(pid, [&](pid_t found) { note(found, parent); });
}

std::uint16_t ProcessTree::index_of(std::optional<pid_t> pid) const {
  for (std::uint16_t i = 0; i < found_count_; ++i) {
    if (found_[i].pid == pid) return i;
  }
  return Found::kNone;
}

bool ProcessTree::is_below_spared(pid_t pid) const {
  return std::any_of(spared_.begin(), spared_.end(),
                     [&](pid_t spared) { return below(pid, spared) == Below::yes; });
}

void ProcessTree::find(bool stop) {
  found_count_ = 0;
  spared_seen_ = 0;
  Signalled ignored;
  const auto visit = [&](pid_t pid) { return !stop || send(pid, SIGSTOP, ignored); };
  const bool can_look = proc::is_ours() && open_to_read(path_of("/proc/%d/task", getpid()));
  if (!can_look) {
    ask_for_children([&](pid_t pid) { return note(pid, Found::kNone) && visit(pid); });
  } else if (!proc::has_children()) {
    read_directory(path_of("/proc"), [&](pid_t pid) {
      if (below_us(pid) == Below::yes && !is_below_spared(pid) &&
          note(pid, index_of(parent_of(pid)))) {
        visit(pid);
      }
    });
  } else {
    note_children(getpid(), Found::kNone);
    for (std::uint16_t i = 0; i < found_count_; ++i) {
      visit(found_[i].pid);
      note_children(found_[i].pid, i);
    }
  }
}

// A walk uses what is reserved, and the caller what the walk has found.
template <class Use>
void ProcessTree::walk(bool stop, Use use) {
  for (Fd& fd : reserved_) fd.reset();
  find(stop);
  use(std::span(found_.get(), found_count_));
  reserve();
}

void ProcessTree::spare_children() {
  if (child(P_ALL, 0) == Child::none) return;
  std::vector<pid_t> children;
  walk(false, [&](std::span<const Found> found) {
    for (const Found& it : found) {
      if (child(P_PID, it.pid) != Child::none) children.push_back(it.pid);
    }
  });
  spared_ = std::move(children);
}

// A process whose children do not end in time is left to the next walk.
Signalled ProcessTree::kill_from_below(std::span<Found> found) {
  Signalled out;
  for (const Found& it : found) {
    if (it.children == 0) send(it.pid, SIGKILL, out);
  }
  const Deadline until = after(Clock::now(), kWalkWaits);
  for (auto it = found.rbegin(); it != found.rend(); ++it) {
    if (it->children > 0 || it->parent == Found::kNone || !ends(it->pid, until)) continue;
    Found& parent = found[it->parent];
    if (--parent.children == 0) send(parent.pid, SIGKILL, out);
  }
  return out;
}

Signalled ProcessTree::signal(int sig) {
  Signalled out;
  const bool kills = sig == SIGKILL;
  walk(kills, [&](std::span<Found> found) {
    if (kills) out = kill_from_below(found);
    for (const Found& it : found) {
      if (!kills) send(it.pid, sig, out);
    }
    out.only_spared = found.empty() && !spared_.empty() && spared_seen_ >= spared_.size();
  });
  return out;
}

void ProcessTree::end(void (*stuck)(const Signalled&)) {
  const Deadline begun = Clock::now();
  bool said = false;
  for (Millis pause{1};; pause = std::min(pause * 2, kLongestPause)) {
    // A child of ours is there until it is reaped.  So if a walk finds none but those to spare,
    // there was none when it began, and nobody to start another one since.  A walk that does not
    // find those has failed to read /proc, and proves nothing.
    const Signalled killed = signal(SIGKILL);
    if (reap(-1).none_left || killed.only_spared) return;
    if (!said && Clock::now() >= after(begun, kStuckAfter)) {
      said = true;
      stuck(killed);
    }
    ::poll(nullptr, 0, static_cast<int>(pause.count()));
  }
}

std::vector<Process> ProcessTree::alive() {
  std::vector<Process> out;
  walk(false, [&](std::span<const Found> found) {
    for (const Found& it : found) {
      with_living(it.pid, [&](const Fd&) {
        out.push_back({it.pid, name_of(it.pid)});
        return true;
      });
    }
  });
  return out;
}

Reaped ProcessTree::reap(pid_t wanted) {
  Reaped out;
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) out.none_left = true;
    if (pid <= 0) return out;
    if (WIFSTOPPED(status)) {  // it made us its tracer (PTRACE_TRACEME): it is to go on untraced
      const int sig = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
      ptrace(PTRACE_DETACH, pid, nullptr, sig);
      continue;
    }
    std::erase(spared_, pid);  // another process may have the number now
    if (pid == wanted) {
      out.pid = pid;
      out.status = status;
    }
  }
}

}  // namespace dlock
