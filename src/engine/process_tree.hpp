// All processes below this one: finding, signalling and ending them.
//
// This process must be a subreaper (become_subreaper), so that whatever its descendants do, fork
// twice and setsid included, keeps every process of the job below it.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "util/clock.hpp"

namespace dlock {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string name;  // as the kernel has it, up to 15 bytes; not to be trusted
};

void become_subreaper();

/// The descendants of this process, parents before their children; none of them is a zombie, as far
/// as /proc tells.
std::vector<Process> descendants();

/// The ancestors of this process, nearest first, as far as /proc shows them.
std::vector<Process> ancestors();

/// Sends `sig` to each descendant once, through a pidfd, so that a number that was used again in
/// the meantime is not hit.
void signal_tree(int sig);

/// SIGKILL to every descendant that is there now.  What they fork meanwhile is caught by the next
/// call: repeat it until reap() says that none is left.
inline void kill_tree() { signal_tree(9); }

/// What is said of a tree that is still there this long after its SIGKILL (a disk or a freezer
/// keeps a process from dying).  The lock is kept until it is gone.
inline constexpr Millis kStuckAfter{2'000};
inline constexpr std::string_view kStuckMessage =
    "a process of the job does not die of SIGKILL; keeping the lock until it does";

struct Reaped {
  bool none_left = false;  // this process has no children any more
  pid_t pid = 0;           // the one asked for, if it has ended
  int status = 0;          // its wait status
};

/// Collects every child that has ended, and says what became of `wanted`.
Reaped reap(pid_t wanted);

}  // namespace dlock
