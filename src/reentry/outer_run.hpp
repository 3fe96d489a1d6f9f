// The outer run's side of re-entry: see protocol.hpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dlock {

/// A lock that the outer run holds, and that nested runs may use.
struct HeldLockOffer {
  std::string_view key;
  std::string_view owner_id;
  Deadline valid_until;
  Millis ttl;
  std::span<const int> lock_fds;  // Lease::lock_fds()
};

/// Answers processes below this one only, of the same user or of root.  Used by one thread.
class OuterRun {
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
  /// Answers some of what has been asked; false if there was nothing.  What is not among the offers
  /// is not held, or not any more.
  bool serve(std::span<const HeldLockOffer> offers);
  /// Whether a process that borrowed a lock has not ended yet.
  bool has_nested_runs() const;
  /// Tells the nested runs of all other locks that these are lost.  They count as such until they
  /// have ended.
  void recall_all_but(std::span<const HeldLockOffer> offers);

 private:
  struct Connection {
    Fd socket;
    std::string borrowed = {};  // the owner id of the lock; "" if it has borrowed none
  };
  void accept_some();
  void listen(bool on);
  bool answer(Connection& connection, std::span<const HeldLockOffer> offers) const;

  std::string address_;
  Fd events_;
  Fd listener_;
  bool listening_ = true;
  Deadline listens_at_ = kNever;
  std::vector<Connection> connections_;
};

}  // namespace dlock
