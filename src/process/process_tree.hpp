// All processes below this one: finding, signalling and reaping them.  The process that uses a tree
// must be a subreaper (become_subreaper), so that every process of the job stays below it, even one
// that forks twice and calls setsid.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

#include "process/ending.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dlock {

struct Process {
  pid_t pid = 0;
  std::string name;  // as the kernel has it, up to 15 bytes; not to be trusted
};

void become_subreaper();

/// What became of a signal that was sent to a whole tree.
struct Signalled {
  pid_t refused = 0;  // a living process that the kernel does not let us signal; 0: there is none
  int error = 0;      // and why not, an errno
  pid_t living = 0;   // the last of those that got the signal
  bool only_keepers = false;  // as ProcessTree::only_keepers_are_left()
};

/// Which process is still there, and why: the kernel refuses to signal it, or it does not die.
std::string why_alive(const Signalled& killed);
/// Says so on stderr.
void say_stuck(const Signalled& killed);

struct Reaped {
  bool none_left = false;  // this process has no children any more
  pid_t pid = 0;           // the one asked for, if it has ended
  int status = 0;          // its wait status
};

class ProcessTree {
 public:
  /// Reserves the descriptors that it needs.  After a fork both processes have a tree that works.
  ProcessTree();
  /// False if the system had no descriptors left.
  bool ready() const { return ready_; }

  /// Sends `sig` to each living process below this one, parents before their children.  SIGKILL
  /// goes to the processes of dlock that hold locks only when nothing else is left.  A process that
  /// reuses the pid of an ended one gets no signal.  Uses only the reserved descriptors.  May miss
  /// a process that starts meanwhile: repeat SIGKILL until reap() finds no child.
  Signalled signal(int sig);

  /// Collects every child that has ended, and says what became of `wanted`.
  Reaped reap(pid_t wanted);

  /// Kills and reaps all below this one until none is left.  Calls `stuck` once after kStuckAfter.
  void end(void (*stuck)(const Signalled& killed));

  /// The processes below this one that have not ended.
  std::vector<Process> alive();
  /// Whether the only processes left are keepers, one or more, of scripts not below this process.
  bool only_keepers_are_left();

 private:
  void reserve();
  struct Found {
    std::vector<pid_t> pids;
    bool keepers = false;  // processes that keep locks for others were found, too
    void note(pid_t pid);
    bool only_keepers() const { return pids.empty() && keepers; }
  };
  static Found find();
  static Signalled kill(const Found& found);
  template <class Use>
  void walk(Use use);

  std::array<Fd, 3> reserved_;  // closed during a walk
  bool ready_ = true;
};

}  // namespace dlock
