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
// Limits.  A leader that is cut off answers until it finds out that it leads nobody, and the next
// one gives every session its whole timeout anew: only if it was elected earlier than that, by as
// much as is left over here, a session could end too early.
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
  proven_ = sent;
  exchanges_ = {{sent, answered}};
}

void LossClock::answered(Deadline sent, Deadline answered) {
  while (!exchanges_.empty() && exchanges_.front().answered + timeout_ / kLag <= sent) {
    proven_ = std::max(proven_, exchanges_.front().sent);
    exchanges_.pop_front();
  }
  exchanges_.push_back({sent, answered});
}

Deadline LossClock::next_proof() const { return exchanges_.back().answered + timeout_ / kLag; }

Deadline LossClock::valid_until() const {
  const Deadline last = exchanges_.empty() ? proven_ : exchanges_.back().sent;
  return std::min(last + timeout_ - timeout_ / kHand, proven_ + timeout_) - timeout_ / kDrift -
         kDriftAtLeast;
}

}  // namespace dlock::zookeeper
