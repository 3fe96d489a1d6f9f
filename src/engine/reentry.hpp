// Re-entry: a run inside a job that holds the lock already borrows it from that job's supervisor.
//
// The supervisor listens on a local socket.  Its address is in DLOCK_SUPERVISORS, which the command
// inherits, with the owner ids of its locks.  A run that finds there the owner id that the backend
// shows asks at that address whether the lock is held under it.  The connection stays open for as
// long as the lock is borrowed: its end tells the borrower that the lock is lost, and the lender
// that the borrower has ended.
//
// Who may borrow.  Neither pids nor names nor a token in the environment prove that a run is below
//   the holder: two containers may have the same pids and host name, at(1) and tmux(1) copy the
//   environment.  The kernel says which process has connected (SO_PEERCRED); the lender looks for
//   itself among the ancestors of that process.  If /proc does not show them, the lender says so,
//   and the borrower fails: if it waited for the lock, it might wait for its own job.
// Who may lend.  The addresses of a run that has ended stay in environments, and another user may
//   listen there.  So an address stands there with the owner ids of its run, and is asked only for
//   a lock with one of these; and the borrower accepts a lender of its own user, of root, or above
//   itself.
// Loss.  A borrower is a holder like any other: it renews its lease by asking the lender again, and
//   ends its job before the lease is over if the lender does not answer.  So a stopped lender is
//   noticed, too.  An answer names the time that is left; the borrower counts from the instant at
//   which it asked, which comes back with the answer, so a late one is not taken for a new one.
// Without a socket.  A service manager may forbid local sockets (RestrictAddressFamilies).  A run
//   that cannot listen leaves its owner id instead of an address: it holds the lock and cannot lend
//   it, and a nested run that finds this id on the lock fails.
// End of the borrower.  Its front has a copy of the connection, as it has of a witness: a borrower
//   whose supervisor is killed has ended when its front has killed the job.
// Death of the lender.  Where the kernel keeps the lock, the borrower gets a copy of the witness:
//   the lock is kept until the borrower has ended.  Elsewhere its ttl runs on.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "core/backend.hpp"
#include "core/key.hpp"
#include "util/clock.hpp"

namespace dlock {

/// A lease on the lock `request.key`, borrowed from the run above this one that holds it: renewed
/// and released by that run.  Null if no run above holds the lock; Errc::conflict if one does in a
/// mode in which the request would never be granted.  If `wait` has no end, a lock that is held by
/// a process above this one, but not lent, is refused, too.  Without DLOCK_SUPERVISORS it costs
/// nothing, with it one inspect(), which is repeated as acquire() would be.  Errc::unreachable if a
/// supervisor above does not answer within `connect_timeout`: the request might wait for its own
/// job.
Result<std::unique_ptr<Lease>> borrow_lease(Backend& backend, const Request& request,
                                            const Wait& wait, Millis connect_timeout);

}  // namespace dlock

namespace dlock::reentry {

/// A list of addresses and owner ids, the nearest run last.
constexpr const char* kVariable = "DLOCK_SUPERVISORS";
constexpr char kSeparator = ',';  // no owner id has one
/// Before an owner id: of the run whose address stands before it, or of one that has none.
constexpr char kHeldThere = '+';
constexpr char kCannotLend = '-';

/// Asks for one lock.  Without the key, an owner id that somebody has copied to another lock would
/// be lent there.
struct Question {
  std::array<char, 64> owner_id{};
  Deadline::rep asked_at = 0;  // the borrower's clock
  std::array<char, kMaxKeyLength + 1> key{};

  Question() = default;
  Question(std::string_view its_owner_id, std::string_view its_key) {
    its_owner_id.copy(owner_id.data(), owner_id.size());
    its_key.copy(key.data(), kMaxKeyLength);
  }
};

/// Tells whether it is lent, and for how long.
struct Answer {
  static constexpr Millis::rep kNotHeld = 0;
  static constexpr Millis::rep kForEver = -1;
  static constexpr Millis::rep kUnproved = -2;  // it cannot be seen whether the borrower is below
  Deadline::rep asked_at = 0;                   // that of the question
  Millis::rep left_ms = kNotHeld;
  Millis::rep ttl_ms = 0;
};

}  // namespace dlock::reentry
