// Who is still there, where sessions tell nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/sql/lock_rows.hpp"
#include "util/clock.hpp"

namespace dlock::sql {

/// For how long the row of a waiter counts, and how often the waiter renews it.
inline constexpr Millis kWaiterLease{10'000};
inline constexpr Millis kWaiterBeat{2'500};

/// Each renewal changes the time at which a lease ends.  The clocks of several servers may differ,
/// so that time means little to a client.  But a client that has seen the same time for as long as
/// the lease lasts, by the clock of its own machine, knows that the lease is over (as in Amazon's
/// DynamoDB lock client).
///
/// A client that looks once goes by the clock of its server, and adds kMostSkew.
class Heartbeats {
 public:
  /// What the clocks of the servers may differ by.
  static constexpr Millis kMostSkew{300'000};

  /// Sets `left` and `has_session` of these rows, which the server has sent not later than `now`.
  /// `tries_once`: waiters count without kMostSkew.  At worst, the client comes before its turn.
  void judge(std::vector<LockRow>& rows, Deadline now, bool tries_once = false);

 private:
  struct Seen {
    std::string expires_at;
    Deadline until;  // if it does not change
  };
  std::map<std::string, Seen> seen_;  // by the owner
};

}  // namespace dlock::sql
