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

/// Answers only processes below this one, of the same user or of root.  Used by one thread.
class OuterRun {
 public:
  /// Starts to listen.  False, with errno set, if the system refuses.  True if it allows no local
  /// sockets (a sandbox): a nested run sees the owner ids in addresses(), and fails if it asks.
  bool open(std::span<const std::string> owner_ids);
  /// The value of DLOCK_SUPERVISORS for the command: the addresses above this run, and its own.
  std::string addresses() const;
  /// Readable when serve() has something to do; -1 before open().
  int fd() const { return events_.get(); }
  /// Or at this time: no connection is accepted before it, since no descriptor was left for one.
  Deadline next_deadline() const { return listening_ ? kNever : listens_at_; }
  /// Answers some questions; false if there were none.  A lock that is not offered is not held.
  bool serve(std::span<const HeldLockOffer> offers);
  /// Whether a process that borrowed a lock has not ended yet.
  bool has_nested_runs() const;
  /// Tells nested runs of all other locks that these are lost.  They count until they have ended.
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
