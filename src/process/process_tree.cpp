// Finding.  /proc/PID/task/TID/children lists the children of one thread.  A walk reads the lists
//   of all threads of all processes below this one, and looks at no other process of the machine.
//   A kernel without CONFIG_PROC_CHILDREN has no such lists; there a walk looks at the parent of
//   each process of the machine.  Without a /proc of this pid namespace dlock does not start.
// Ended or not.  A pidfd is readable when the last thread of its process has ended.  The state in
//   /proc does not show that: it is Z once the main thread has ended, even if others work on.
// Signalling.  A pid can be reused once its process has been reaped.  So a walk opens a pidfd,
//   checks that its process has this one among its ancestors, and signals through the pidfd.
// Hiding.  A /proc mounted with hidepid (systemd: ProtectProc) shows of a process that is not
//   dumpable, such as a dlock that holds a password, only the number, in the list of its parent.
//   Such a process is signalled without a look at its ancestors.  The processes below it become our
//   children when it dies, and the next walk finds them.
// Order.  A process of the job may be a dlock that holds another lock, whose job must be dead
//   before that lock is free.  So the supervisors and keepers of dlock are killed when nothing else
//   is left, and all others at once, including the launcher of a nested run: its supervisor notices
//   that, and ends its job itself.  If a list of children was incomplete because one ended
//   meanwhile, that one was in it, and counts as something else that is left until it is reaped.
//   No process is stopped: if this one were killed then, a stopped one would never release its
//   locks.
// Keepers.  A keeper may keep the lock of a script that is not below this process, but above it.
//   It is left alone: its script relies on it, and perhaps waits for this process.
// Ending.  Repeated walks end: a killed process forks no more, and its children become ours.
// Descriptors.  A walk must work when the system has no descriptors left, or a job outlives its
//   lock.  So some are reserved, and closed during a walk.  If a thread of a client library takes
//   them then, this walk finds nothing, and the next one does.

#include "process/process_tree.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "process/proc.hpp"
#include "util/fd.hpp"
#include "util/log.hpp"
#include "util/process_title.hpp"

namespace dlock {
namespace {

using proc::has_ended;
using proc::name_of;
using proc::open_to_read;
using proc::path_of;
using proc::pidfd_of;

constexpr Millis kLongestPause{20};  // between two walks that kill

// Calls `use` with a pidfd of a process that was found, if it is below us and has not ended, and
// returns its result.  The pidfd is empty if no descriptor is left, or before Linux 5.3.
template <class Use>
bool with_living(pid_t pid, Use use) {
  const Fd pidfd = pidfd_of(pid);
  const bool ended = pidfd ? has_ended(pidfd) : errno == ESRCH;
  return !ended && below_us(pid) != Below::no && use(pidfd);
}

// A process that only calls itself so dies last.
bool may_hold_locks(pid_t pid) { return util::may_hold_locks(name_of(pid)); }

bool is_of_our_program(pid_t pid) {
  struct stat its {};
  struct stat ours {};
  return stat(path_of("/proc/%d/exe", pid).data(), &its) == 0 &&
         stat("/proc/self/exe", &ours) == 0 && util::is_same_file(its, ours);
}

// A keeper's title ends with the pid of its script.
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
  util::log(util::Level::error, why_alive(killed) +
                                    "; dlock waits for its end, and keeps the "
                                    "lock unless that has expired");
}

namespace {

// True if the process got the signal.
bool send(pid_t pid, int sig, Signalled& out) {
  return with_living(pid, [&](const Fd& pidfd) {
    const bool sent = pidfd ? proc::send(pidfd, sig) : ::kill(pid, sig) == 0;
    if (sent) {
      out.living = pid;
    } else if (errno != ESRCH) {
      out.refused = pid;
      out.error = errno;
    }
    return sent;
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

void ProcessTree::Found::note(pid_t pid) {
  if (is_keeper_for_others(pid)) {
    keepers = true;
  } else {
    pids.push_back(pid);
  }
}

ProcessTree::Found ProcessTree::find() {
  Found found;
  const auto note = [&](pid_t pid) { found.note(pid); };
  proc::read_children(getpid(), note);
  for (std::size_t i = 0; i < found.pids.size(); ++i) proc::read_children(found.pids[i], note);
  return found;
}

// The walk needs the reserved descriptors, and so does `use`, for what the walk has found.
template <class Use>
void ProcessTree::walk(Use use) {
  for (Fd& fd : reserved_) fd.reset();
  use(find());
  reserve();
}

// Processes that may hold a lock are left to a later walk.
Signalled ProcessTree::kill(const Found& found) {
  Signalled out;
  Signalled ignored;
  const bool nothing_else = std::ranges::all_of(found.pids, may_hold_locks);
  for (const pid_t pid : found.pids) {
    if (nothing_else || !may_hold_locks(pid)) {
      send(pid, SIGKILL, out);
    } else {
      send(pid, SIGCONT, ignored);  // a stopped process reaps no child
    }
  }
  return out;
}

Signalled ProcessTree::signal(int sig) {
  Signalled out;
  walk([&](const Found& found) {
    if (sig == SIGKILL) {
      out = kill(found);
    } else {
      for (const pid_t pid : found.pids) send(pid, sig, out);
    }
    out.only_keepers = found.only_keepers();
  });
  return out;
}

bool ProcessTree::only_keepers_are_left() {
  bool out = false;
  walk([&](const Found& found) { out = found.only_keepers(); });
  return out;
}

void ProcessTree::end(void (*stuck)(const Signalled&)) {
  const Deadline begun = Clock::now();
  bool said = false;
  for (Millis pause{1};; pause = std::min(pause * 2, kLongestPause)) {
    // A child of ours stays until it is reaped.  So if a walk finds only keepers, there was no
    // other process when it began, and none to start one since.  A walk that finds nothing proves
    // nothing: it may have failed to read /proc.
    const Signalled killed = signal(SIGKILL);
    if (reap(-1).none_left || killed.only_keepers) return;
    if (!said && Clock::now() >= after(begun, kStuckAfter)) {
      said = true;
      stuck(killed);
    }
    ::poll(nullptr, 0, static_cast<int>(pause.count()));
  }
}

std::vector<Process> ProcessTree::alive() {
  std::vector<Process> out;
  walk([&](const Found& found) {
    for (const pid_t pid : found.pids) {
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
    if (WIFSTOPPED(status)) {  // it made us its tracer (PTRACE_TRACEME): let it go on untraced
      const int sig = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
      ptrace(PTRACE_DETACH, pid, nullptr, sig);
      continue;
    }
    if (pid == wanted) {
      out.pid = pid;
      out.status = status;
    }
  }
}

}  // namespace dlock
