// Who is still there, where several servers take writes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/mysql/connection.hpp"
#include "backends/mysql/marks.hpp"
#include "backends/mysql/state.hpp"
#include "util/clock.hpp"

namespace dlock::mysql {

/// The lease of a waiter's row, which it renews that often.
inline constexpr Millis kWaiterLease{10'000};
inline constexpr Millis kWaiterBeat{2'500};

/// On a cluster, every server takes changes.  None of them knows the sessions of the others,
/// and their clocks may differ, so a time that one has written means little to another.  Instead,
/// each renewal of a holder or a waiter changes the time at which its lease ends.  A client
/// that has seen the same time for as long as that lease lasts, by the clock of its own machine,
/// knows that it is over.  (As in Amazon's DynamoDB lock client.)  To take the lock it deletes the
/// row on condition that the time is still the same, and the cluster lets only one of two changes
/// of a row be committed.
///
/// Who cannot watch for so long (--nonblock) goes by the clock of its server, with kMostSkew.  But
/// where it tries only once, the row of a waiter counts without it: at worst, somebody comes before
/// its turn.
class Pulse {
 public:
  /// What the clocks of the servers may differ by.
  static constexpr Millis kMostSkew{300'000};

  /// These are the rows of the key, as received from the server not later than `now`.
  void see(const std::vector<Party>& parties, Deadline now);

  /// For Marks::of_cluster().
  std::string is_over(Deadline now, bool tries_once = false) const;

 private:
  struct Seen {
    std::string expires_at;
    Deadline until;  // if it does not beat
  };
  std::map<std::uint64_t, Seen> seen_;  // by the id of the row
};

/// For texts that go over this connection now.
Marks marks_on(const Connection& connection, const Pulse& pulse = Pulse(), bool tries_once = false);

}  // namespace dlock::mysql
