// All processes below this one: finding, signalling and reaping them.
//
// The process that uses a tree must be a subreaper (become_subreaper), so that every process of the
// job stays below it, even one that forks twice and calls setsid.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

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
  bool only_spared = false;  // as ProcessTree::only_spared_are_left()
};

/// After this long, a process of the tree that is still there has survived its SIGKILL.
inline constexpr Millis kStuckAfter{2'000};

/// Which process is still there, and why: the kernel refuses to signal it, or it does not die.
std::string why_alive(const Signalled& killed);
/// Says so on stderr if there is memory for it.
void say_stuck(const Signalled& killed);

struct Reaped {
  bool none_left = false;  // this process has no children any more
  pid_t pid = 0;           // the one asked for, if it has ended
  int status = 0;          // its wait status
};

class ProcessTree {
 public:
  /// Reserves the memory and the descriptors that finding and signalling need.  After a fork both
  /// processes have a tree of their own that works.
  ProcessTree();
  /// False if the system had no descriptors left.
  bool ready() const { return ready_; }

  /// Takes the children that this process has now for somebody else's, as those of a shell that
  /// became dlock: `exec > >(tee log); exec dlock run ...`.  They and what is below them are left
  /// alone; if they leave an orphan, it cannot be told from one of ours.
  void spare_children();
  /// In a process that was forked since: they are not its children.
  void spare_none() { spared_.clear(); }

  /// Sends `sig` to each process below this one that has not ended, parents before their children.
  /// SIGKILL goes to the processes of dlock that hold locks only when nothing else is left.
  /// A process that got the number of one that has ended is not hit.  Allocates no memory, and
  /// needs no descriptor but the reserved ones.
  ///
  /// A process that is born at the same time can be missed.  So repeat SIGKILL until reap() says
  /// that no child is left.  Without a usable /proc only the children of this process are found;
  /// what is below them becomes ours when they die.
  Signalled signal(int sig);

  /// Collects every child that has ended, and says what became of `wanted`.
  Reaped reap(pid_t wanted);

  /// Kills and reaps every process below this one; returns when none is left.  Calls `stuck` once
  /// if that takes longer than kStuckAfter.  Allocates no memory.
  void end(void (*stuck)(const Signalled& killed));

  /// The processes below this one that have not ended.
  std::vector<Process> alive();
  /// Whether there are none but those to spare, and at least one of these: children that
  /// spare_children() was told of, and processes that keep the lock of a script which is not below
  /// this process (`dlock acquire --while`).
  bool only_spared_are_left();

 private:
  void reserve();
  bool note(pid_t pid);
  bool has_only_spared() const;
  bool is_below_spared(pid_t pid) const;
  static Signalled kill(std::span<const pid_t> found);
  void find();
  template <class Use>
  void walk(Use use);

  std::array<Fd, 3> reserved_;  // given up for the time of a walk
  static constexpr std::size_t kMostFound = 8'192;
  // Not initialised: a run that makes no walk does not touch its pages.
  std::unique_ptr<pid_t[]> found_ = std::make_unique_for_overwrite<pid_t[]>(kMostFound);
  std::size_t found_count_ = 0;
  bool ready_ = true;
  std::vector<pid_t> spared_;
  // In this walk.
  std::size_t spared_seen_ = 0;
  std::size_t keepers_seen_ = 0;  // for others
};

}  // namespace dlock
