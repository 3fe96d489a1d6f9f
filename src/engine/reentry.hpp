// Re-entry: a run inside a job that holds the lock already borrows it from that job's supervisor.
//
// The supervisor listens on a local socket.  Its address is in DLOCK_SUPERVISORS, which the command
// inherits, with the owner ids of its locks.  A run that finds there the owner id that the backend
// shows asks at that address whether the lock is held under it.  The connection stays open for as
// long as the lock is borrowed: its end tells the borrower that the lock is lost, and the lender
// that the borrower has ended.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.hpp"
#include "util/fd.hpp"

namespace dlock {

/// What a supervisor holds, and lends.
struct Loan {
  std::string_view key;
  std::string_view owner_id;
  Deadline valid_until;
  Millis ttl;
  std::span<const int> witness;  // Lease::witness_fds()
};

/// The supervisor's side.  It lends to processes below this one only, of the same user or of root.
/// Used by one thread.
class Lender {
 public:
  /// Starts to listen.  False, with errno set, if the system refuses.  Where it allows no local
  /// sockets at all (a sandbox), true: a nested run then sees the owner ids in addresses(), and
  /// fails if it asks for one of these locks.
  bool open(std::span<const std::string> owner_ids);
  /// The value of DLOCK_SUPERVISORS for the command: the addresses above this run, and its own.
  std::string addresses() const;
  /// Readable when serve() has something to do; -1 before open().
  int fd() const { return events_.get(); }
  /// Or at this time: there was no descriptor left for a connection, and none is accepted before.
  Deadline next_deadline() const { return listening_ ? kNever : listens_at_; }
  /// Answers some of what has been asked; false if there was nothing.  What is not among the loans
  /// is not lent, or not any more.
  bool serve(std::span<const Loan> loans);
  /// Whether a process that borrowed a lock has not ended yet.
  bool has_borrowers() const;
  /// Tells the borrowers of all other locks that these are lost.  They are borrowers until they
  /// have ended.
  void recall_all_but(std::span<const Loan> loans);

 private:
  struct Connection {
    Fd socket;
    std::string borrowed = {};  // the owner id of the lock; "" if it has borrowed none
  };
  void accept_some();
  void listen(bool on);
  bool answer(Connection& connection, std::span<const Loan> loans) const;

  std::string address_;
  Fd events_;
  Fd listener_;
  bool listening_ = true;
  Deadline listens_at_ = kNever;
  std::vector<Connection> connections_;
};

/// A lease on the lock `request.key`, borrowed from the run above this one that holds it: renewed
/// and released by that run.  Null if no run above holds the lock; Errc::conflict if one does in a
/// mode in which the request would wait for ever.  If `wait` has no end, a lock that is held by a
/// process above this one, but not lent, is refused, too.  Without DLOCK_SUPERVISORS it costs
/// nothing, with it one inspect(), which is repeated as acquire() would be.  Errc::unreachable if a
/// supervisor above does not answer within `connect_timeout`: the request might wait for its own
/// job.
Result<std::unique_ptr<Lease>> borrow_lease(Backend& backend, const Request& request,
                                            const Wait& wait, Millis connect_timeout);

}  // namespace dlock
