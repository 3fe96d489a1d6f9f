// The signal mask, umask, dispositions and descriptors that dlock inherited, for the command.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <array>
#include <optional>
#include <vector>

#include "util/fd.hpp"

namespace dlock {

struct Inherited {
  sigset_t mask;
  mode_t umask;
  bool ignored_sigchld;
  std::optional<sigset_t> ignored;  // all signals that were ignored; note_dispositions()
  std::vector<Fd> fds;              // open ones from 3 on, in ascending order
  std::array<bool, 3> missing;      // standard descriptors that were closed

  /// Notes it, blocks every signal, stops ignoring SIGCHLD, and opens /dev/null on closed standard
  /// descriptors, so that no socket gets their numbers.  Call it before dlock opens anything.
  static Inherited note();

  /// Call it before loading a client library, which may change dispositions; dlock only SIGCHLD's.
  void note_dispositions();

  /// In the child, between fork and exec: restores all this, and sets close-on-exec on each
  /// descriptor that dlock did not inherit.  Async-signal-safe.
  void restore() const;

  /// In launcher and supervisor, once the command has got them: gives up stdin, stdout and the
  /// inherited descriptors, so that a pipe of the command ends when the command closes it.
  void drop();
};

/// Whether this process ignores the signal, as dlock did when it started (nohup, a background job).
/// Not for SIGCHLD.  Async-signal-safe.
bool ignores(int sig);

}  // namespace dlock
