// The leader ends sessions.  It hears of ours when a connection is made, and else from the server
// that we are connected to, which tells whom it has heard when the leader asks: twice a tick.  So
// an answer from that server proves nothing, it may be cut off from the leader and go on to answer
// for several ticks.  A sync is answered by the leader; and what we said half a tick before it has
// reached the leader, too, on the same way.
//
// Half a tick is a quarter of the timeout at most: servers grant no less than two ticks, unless
// somebody has set minSessionTimeout.  Hence: when a sync that was sent at t is answered, the
// leader knows of what our server had heard by t - timeout/4.  When that was, is not known, but it
// was before its answer.
//
// A leader that is cut off accepts connections and answers syncs until it finds out that it leads
// nobody, some ticks after the others may have elected the next one.  That one gives every session
// its whole timeout anew.  So a session lives for a timeout since the last request that needed a
// majority.  A holder sends such requests, and a waiter whose turn has come.  One that only waits
// spares the servers that write.
#include "backends/zookeeper/loss_clock.hpp"

#include <algorithm>

namespace dlock::zookeeper {
namespace {

constexpr int kLag = 4;    // a part of the timeout
constexpr int kHand = 16;  // kept in hand, so that a renewal that comes early moves the end, too
constexpr int kDrift = 50;
constexpr Millis kDriftAtLeast{2};

}  // namespace

void LossClock::opened(Deadline sent, Deadline answered, Millis timeout) {
  timeout_ = timeout;
  heard_ = sent;
  exchanges_ = {{sent, answered}};
}

void LossClock::synced(Deadline sent, Deadline answered) {
  while (!exchanges_.empty() && exchanges_.front().answered + timeout_ / kLag <= sent) {
    heard_ = std::max(heard_, exchanges_.front().sent);
    exchanges_.pop_front();
  }
  exchanges_.push_back({sent, answered});
}

void LossClock::proved(Deadline sent, Deadline answered) {
  synced(sent, answered);
  quorum_ = std::max(quorum_, sent);
}

Deadline LossClock::next_proof() const { return exchanges_.back().answered + timeout_ / kLag; }

Deadline LossClock::valid_until() const {
  return std::min(heard_ + timeout_, quorum_ + timeout_ - timeout_ / kHand) - timeout_ / kDrift -
         kDriftAtLeast;
}

}  // namespace dlock::zookeeper
