// The world as dlock found it: signal mask, dispositions and descriptors that the command shall
// get.
#pragma once

#include <signal.h>

#include <array>
#include <vector>

#include "util/fd.hpp"

namespace dlock {

struct Inherited {
  sigset_t mask;
  sigset_t ignored;             // signals that were ignored when dlock started
  std::vector<Fd> fds;          // open ones from 3 on, in ascending order
  std::array<bool, 3> missing;  // standard descriptors that were closed

  /// Notes it, blocks every signal and puts /dev/null under standard descriptors that were closed,
  /// so that no socket lands there.  To be called before dlock opens anything.
  static Inherited note();

  /// Whether the signal was ignored when dlock started.  Async-signal-safe.
  bool ignores(int sig) const { return sigismember(&ignored, sig) == 1; }

  /// In the child, between fork and exec: gives all of it back, and marks every descriptor that
  /// dlock did not inherit to be closed by exec.  Async-signal-safe.
  void restore() const;

  /// In front and supervisor, once the command has got them: gives up stdin, stdout and the
  /// inherited descriptors, so that a pipe of the command ends when the command closes it.
  void drop();
};

}  // namespace dlock
