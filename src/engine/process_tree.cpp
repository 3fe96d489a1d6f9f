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
// Order.  A process of the job may be a dlock that holds another lock, and what that is held for is
//   to be dead before it is free.  So the supervisors and keepers of dlock are killed when nothing
//   else is left, and all others at once, the front of a nested run, too: its supervisor hears of
//   that, and ends its job itself.  If a list of children was incomplete because one ended
//   meanwhile, that one was in it: what has ended counts as something else that is left, until it
//   is reaped.  Nothing is stopped: if this process were killed then, it would hold its locks for
//   ever.
// Keepers.  One may have the lock of a script that is not below this process, but around it.  It is
//   left alone, as its script counts on it, and waits for us perhaps.
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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include "engine/proc.hpp"
#include "util/fd.hpp"
#include "util/log.hpp"
#include "util/process_title.hpp"

namespace dlock {
namespace {

using proc::below;
using proc::has_ended;
using proc::name_of;
using proc::open_to_read;
using proc::path_of;
using proc::pidfd_of;
using proc::read_directory;

constexpr Millis kLongestPause{20};  // between two walks that kill

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

// Calls `use` with a pidfd of a process that was found, if it is below us and has not ended.  No
// descriptor: the system has none left, or is Linux before 5.3.  Returns what `use` does.
template <class Use>
bool with_living(pid_t pid, Use use) {
  const Fd pidfd = pidfd_of(pid);
  const bool ended = pidfd ? has_ended(pidfd) : errno == ESRCH;
  return !ended && below_us(pid) != Below::no && use(pidfd);
}

// If it only calls itself so, it dies last.
bool may_hold_locks(pid_t pid) { return util::may_hold_locks(name_of(pid)); }

bool is_of_our_program(pid_t pid) {
  struct stat its {};
  struct stat ours {};
  return stat(path_of("/proc/%d/exe", pid).data(), &its) == 0 &&
         stat("/proc/self/exe", &ours) == 0 && util::is_same_file(its, ours);
}

// A keeper's title ends with the number of its script.
bool is_keeper_for_others(pid_t pid) {
  if (!name_of(pid).starts_with(util::kKeeperName) || !is_of_our_program(pid)) return false;
  const Fd title = open_to_read(path_of("/proc/%d/cmdline", pid));
  std::array<char, 64> text{};
  if (!title || read(title.get(), text.data(), text.size() - 1) <= 0) return false;
  const char* const number = std::strrchr(text.data(), ' ');
  return number != nullptr && below_us(std::atoi(number)) == Below::no;
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
        pidfd ? syscall(SYS_pidfd_send_signal, pidfd.get(), sig, nullptr, 0) : ::kill(pid, sig);
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

bool ProcessTree::note(pid_t pid) {
  const bool is_spared = std::find(spared_.begin(), spared_.end(), pid) != spared_.end();
  if (is_spared || is_keeper_for_others(pid)) {
    ++(is_spared ? spared_seen_ : keepers_seen_);
    return false;
  }
  if (found_count_ == kMostFound) return false;
  found_[found_count_++] = pid;
  return true;
}

bool ProcessTree::is_below_spared(pid_t pid) const {
  return std::any_of(spared_.begin(), spared_.end(),
                     [&](pid_t spared) { return below(pid, spared) == Below::yes; });
}

void ProcessTree::find() {
  found_count_ = 0;
  spared_seen_ = keepers_seen_ = 0;
  const auto note_it = [&](pid_t pid) { return note(pid); };
  const bool can_look = proc::is_ours() && open_to_read(path_of("/proc/%d/task", getpid()));
  if (!can_look) {
    ask_for_children(note_it);
  } else if (!proc::has_children()) {
    read_directory(proc::Path{"/proc"}, [&](pid_t pid) {
      if (below_us(pid) == Below::yes && !is_below_spared(pid)) note(pid);
    });
  } else {
    proc::read_children(getpid(), note_it);
    for (std::size_t i = 0; i < found_count_; ++i) proc::read_children(found_[i], note_it);
  }
}

// A walk uses what is reserved, and the caller what the walk has found.
template <class Use>
void ProcessTree::walk(Use use) {
  for (Fd& fd : reserved_) fd.reset();
  find();
  use(std::span<const pid_t>(found_.get(), found_count_));
  reserve();
}

void ProcessTree::spare_children() {
  if (child(P_ALL, 0) == Child::none) return;
  std::vector<pid_t> children;
  walk([&](std::span<const pid_t> found) {
    for (const pid_t pid : found) {
      if (child(P_PID, pid) != Child::none) children.push_back(pid);
    }
  });
  spared_ = std::move(children);
}

// Those that may hold a lock are left to the next walk, or one after that.
Signalled ProcessTree::kill(std::span<const pid_t> found) {
  Signalled out;
  Signalled ignored;
  const bool nothing_else = std::all_of(found.begin(), found.end(), may_hold_locks);
  for (const pid_t pid : found) {
    if (nothing_else || !may_hold_locks(pid)) {
      send(pid, SIGKILL, out);
    } else {
      send(pid, SIGCONT, ignored);  // one that is stopped reaps nobody
    }
  }
  return out;
}

Signalled ProcessTree::signal(int sig) {
  Signalled out;
  walk([&](std::span<const pid_t> found) {
    if (sig == SIGKILL) {
      out = kill(found);
    } else {
      for (const pid_t pid : found) send(pid, sig, out);
    }
    out.only_spared = has_only_spared();
  });
  return out;
}

bool ProcessTree::has_only_spared() const {
  return found_count_ == 0 && spared_seen_ + keepers_seen_ > 0 && spared_seen_ >= spared_.size();
}

bool ProcessTree::only_spared_are_left() {
  bool out = false;
  walk([&](std::span<const pid_t>) { out = has_only_spared(); });
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
  walk([&](std::span<const pid_t> found) {
    for (const pid_t pid : found) {
      with_living(pid, [&](const Fd&) {
        out.push_back({pid, name_of(pid)});
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
