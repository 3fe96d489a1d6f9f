// Who holds a lock and who waits for it, as its rows say; and what that means for a request.  Pure:
// no network.
//
// A holder's row is its lease.  The lease is over when its time has passed by the clock of the
// server and the session of the holder has ended: a server whose clock jumps takes no lock from a
// holder that is connected.  The row of a waiter counts while its session is there.  Where sessions
// tell nothing, see heartbeats.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/sql/answer.hpp"
#include "core/backend.hpp"
#include "core/queue.hpp"

namespace dlock::sql {

struct LockRow {
  enum class Role { holder, waiter, broken };
  std::string owner;
  Role role = Role::holder;
  std::string key;
  Claim claim;
  unsigned slot = 0;
  std::uint64_t fence = 0;
  Millis age{0};
  std::optional<Millis> left;  // until the lease is over; none: never
  std::string expires_at;      // as the server writes it; another one after each renewal
  bool has_session = false;    // that of its owner is there
  std::string record;

  bool is_alive() const {
    if (role == Role::waiter) return has_session;
    return role == Role::holder && (has_session || !left || *left > Millis{0});
  }
};

std::optional<LockRow::Role> parse_role(std::string_view name);

/// Those of the rows that make sense, in their order.
std::vector<LockRow> lock_rows_of(const Answer& answer);

/// The row of this owner; null: there is none.
const LockRow* find_row(std::span<const LockRow> rows, std::string_view owner);

/// The lock `key`, of which these are all rows.
LockInfo lock_info(const std::string& key, std::span<const LockRow> rows);

/// What a client has read before it decides.
struct Look {
  bool is_writable = false;            // by this client, now: the server is no standby
  std::optional<std::string> version;  // of the key; none: the key has no row
  std::optional<LockRow::Role> own;    // of the client's own row; none: it has no row
  bool has_waiters_before = false;     // there are rows of waiters, older than its own
  // The holders in the order of their grants; then, where there is no gate, those that wait.
  std::vector<LockRow> rows;
};
/// The last two of the answers, as of state.sql.
Look look_of(std::span<const Answer> answers);

/// What the request `own` has to do, which is behind all rows if it has none.
struct Decision {
  Turn::Kind kind = Turn::Kind::granted;
  unsigned slot = 0;                 // granted, in slots mode: the number
  std::vector<const LockRow*> over;  // granted: the leases that are over
  const LockRow* first = nullptr;    // else: the one to wait for, or that excludes the request
};
Decision decide(const Look& look, Claim claim, std::string_view own);

}  // namespace dlock::sql
