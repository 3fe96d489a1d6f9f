// A command or a script that a lock is held for, and how it is ended.
#pragma once

#include <string>

#include "util/clock.hpp"

namespace dlock {

/// A process and all processes below it.  Only end() ends it: it sets the instant of the SIGKILL,
/// which a later call can move forward but not back.
class Ending {
 public:
  virtual ~Ending() = default;

  /// "deploy.sh (pid 4121)"
  virtual std::string in_words() const = 0;

  /// SIGTERM to all of it now, unless `kill_at` has passed; SIGKILL at the earliest `kill_at`.
  virtual void end(Deadline kill_at, Deadline now) = 0;

  /// Sends the signal that is due.  True if nothing has to be watched any more.
  virtual bool finished(Deadline now) = 0;
  /// When finished() must be called again at the latest.
  virtual Deadline next_deadline(Deadline now) const = 0;

  /// Which of it is still there kStuckAfter its SIGKILL, and why, as finished() found; else "".
  virtual const std::string& stuck() const = 0;
};

/// A process that is still there after this long has survived its SIGKILL.
inline constexpr Millis kStuckAfter{2'000};

}  // namespace dlock
