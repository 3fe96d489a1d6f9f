// What a lock is held for, as the one that ends it sees it.
#pragma once

#include <string>

#include "util/clock.hpp"

namespace dlock {

/// A process and all that is below it.  It is ended in one way only: end() sets the instant of the
/// SIGKILL, which later causes can move forward and nothing moves back.
class Ending {
 public:
  virtual ~Ending() = default;

  /// "deploy.sh (pid 4121)"
  virtual std::string in_words() const = 0;

  /// SIGTERM to all of it now (not if `kill_at` has come), SIGKILL at `kill_at`, or earlier if that
  /// was said before.
  virtual void end(Deadline kill_at, Deadline now) = 0;
  virtual bool is_ending() const = 0;

  /// Signals what is due.  True when nothing has to be watched any more.
  virtual bool finished(Deadline now) = 0;
  /// When finished() is to be called again at the latest.
  virtual Deadline next_deadline(Deadline now) const = 0;

  /// Which of it is still there kStuckAfter its SIGKILL, and why, as finished() has found; "" if
  /// that is not so.
  virtual const std::string& stuck() const = 0;
};

/// A process that is still there after this long has survived its SIGKILL.
inline constexpr Millis kStuckAfter{2'000};

}  // namespace dlock
