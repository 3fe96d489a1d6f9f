// How long a session surely lives on the servers: arithmetic over instants that are passed in.
#pragma once

#include <deque>

#include "util/clock.hpp"

namespace dlock::zookeeper {

class LossClock {
 public:
  /// A connection to a server was begun at `sent` and accepted by `answered` for this session,
  /// which ends `timeout` after the servers last heard of it.
  void opened(Deadline sent, Deadline answered, Millis timeout);

  /// A sync that was sent at `sent` was answered by `answered`.
  void synced(Deadline sent, Deadline answered);

  /// The same of a request that a majority of the servers has to write down.
  void proved(Deadline sent, Deadline answered);

  /// Until then no server ends the session.  It has passed before the first proved().
  Deadline valid_until() const;

  /// How often to send a sync: with fewer of them, an answer proves less.
  Millis interval() const { return timeout_ / 8; }
  /// When the next sync is due.  This and next_proof(): only after opened().
  Deadline next_sync() const { return exchanges_.back().sent + interval(); }

  /// A sync that is sent then, or later, proves that the leader has heard of the last one.
  Deadline next_proof() const;

  /// Whether enough of the timeout is left for a hold to begin: more than half, since the command
  /// line accepts a --kill-after of almost half of the TTL.
  bool is_fresh(Deadline now) const { return valid_until() >= now + timeout_ * 9 / 16; }

 private:
  Millis timeout_{0};
  // When the last message was sent that the leader has surely heard, if it still is the leader.
  Deadline heard_{};
  // When the last request was sent that a majority has confirmed.  After that, another leader may
  // have been elected.
  Deadline quorum_ = Deadline::min();
  struct Exchange {
    Deadline sent;
    Deadline answered;
  };
  std::deque<Exchange> exchanges_;  // those that prove nothing yet, and the last one
};

}  // namespace dlock::zookeeper
