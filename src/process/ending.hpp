// A command or a script that a lock is held for, and how it is ended.
#pragma once

#include <string>

#include "util/clock.hpp"

namespace dlock {

/// A process and all processes below it.  The destructor does not end it.
class Ending {
 public:
  virtual ~Ending() = default;

  /// "deploy.sh (pid 4121)"
  virtual std::string in_words() const = 0;

  /// The first call sends SIGTERM to all of it, unless `kill_at` has passed.  advance() sends the
  /// SIGKILL, at the soonest `kill_at` of all calls.  Returns SIGTERM, or SIGKILL if `kill_at` has
  /// passed.
  virtual int end(Deadline kill_at, Deadline now) = 0;

  /// Sends the signal that is due.  True if nothing has to be watched any more.
  virtual bool advance(Deadline now) = 0;
  /// When advance() must be called again at the latest.
  virtual Deadline next_deadline(Deadline now) const = 0;

  /// Which of it is still there kStuckAfter its SIGKILL, and why, as advance() found; else "".
  virtual const std::string& stuck() const = 0;
};

/// A process that is still there after this long has survived its SIGKILL.
inline constexpr Millis kStuckAfter{2'000};

}  // namespace dlock
