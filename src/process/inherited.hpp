// The world as dlock found it: signal mask, umask, dispositions and descriptors that the command
// shall get.
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

  /// Notes it, blocks every signal, ceases to ignore SIGCHLD, and puts /dev/null under standard
  /// descriptors that were closed, so that no socket lands there.  To be called before dlock opens
  /// anything.
  static Inherited note();

  /// To be called before a client library is loaded: it may change any disposition.  dlock itself
  /// changes no other one than that of SIGCHLD.
  void note_dispositions();

  /// In the child, between fork and exec: gives all of it back, and marks every descriptor that
  /// dlock did not inherit to be closed by exec.  Async-signal-safe.
  void restore() const;

  /// In launcher and supervisor, once the command has got them: gives up stdin, stdout and the
  /// inherited descriptors, so that a pipe of the command ends when the command closes it.
  void drop();
};

/// Whether this process ignores the signal, as dlock did when it started (nohup, a background job).
/// Not for SIGCHLD.  Async-signal-safe.
bool ignores(int sig);

}  // namespace dlock
