// When a waiter calls a service again that does not answer, and for how long.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/backend.hpp"

namespace dlock {

/// How long an acquire() that gives up tries to reach the service once more, if it would leave
/// something behind.
inline constexpr Millis kFarewell{2'000};

/// Of one acquire().  A service that has never answered (see Wait::reached, too) is tried for the
/// connect timeout, or until the wait is over if that is sooner.  If it then says that it has no
/// room for one more client (Error::is_full), it counts as one that has answered: that is waited
/// for until the wait is over, with one message when the outage begins and one when it ends.  With
/// Wait::holds that is waited for no longer than the connect timeout.  A service that comes and
/// goes is in one outage until it has been well for some time.
class Patience {
 public:
  /// `wait` must outlive this object.
  Patience(const Wait& wait, Millis connect_timeout, std::string_view key);

  /// The service has decided something: the lock is ours, or another client's.  From now on an
  /// outage is waited out.
  void answered();
  /// All works that waiting needs, or the lock is ours: an outage is over, if there was one.
  void recovered();

  /// The request does not wait (--nonblock): what is tried, is tried once.
  bool tries_once() const { return tries_once_; }

  /// Until when one call may take: for the connect timeout, but no longer than a little after the
  /// end of the wait.
  Deadline call_until() const;

  /// After `why`, with which a try has failed: waits for a random time and returns success if
  /// another try is to be made.  The time grows with each failure (exponential backoff with full
  /// jitter), so that many waiters do not call at the same instant.  Otherwise returns what the
  /// acquire() fails with: `why` if it is not Errc::unreachable or the time is over (or the failure
  /// before it, if the end of the time has cut this try short); Errc::cancelled.
  Result<void> pause(const Error& why);

 private:
  const Wait& wait_;
  const Millis connect_timeout_;
  const std::string key_;
  const Deadline first_contact_until_;
  const bool tries_once_;
  bool was_answered_;
  bool was_full_ = false;  // as the last try found that was not cut short
  // Of the present outage, or the last one.
  unsigned failures_ = 0;               // of tries
  Deadline outage_began_{};             // or began again
  std::optional<Deadline> well_since_;  // none: it goes on
  Error trouble_{};                     // the last one that was not cut short
  enum class Announced { nothing, beginning, end };
  Announced announced_ = Announced::nothing;
};

/// After a try that failed: waits for a short random time.  False: no other try is to be made
/// before `deadline`, or it is cancelled.
bool pause_briefly(Deadline deadline, Cancel cancel);

/// Of an acquire() that gives up: `once` with a deadline, again and again while it fails with
/// Errc::unreachable, for kFarewell at most.  Returns the last result.
template <class Try>
std::invoke_result_t<Try, Deadline> try_in_farewell(Try once, Deadline deadline, Cancel cancel) {
  deadline = std::min(deadline, after(Clock::now(), kFarewell));
  for (;;) {
    auto result = once(deadline);
    if (result || result.error().code != Errc::unreachable) return result;
    if (!pause_briefly(deadline, cancel)) return result;
  }
}

}  // namespace dlock
