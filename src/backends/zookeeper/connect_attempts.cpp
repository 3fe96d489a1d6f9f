// A silent server must not use up the time that the others need, so an attempt is short.  In the
// next round each has twice as long: perhaps the servers are only far away.
//
// A single server is given more time.  While it starts, it may drop the first words of a
// connection, so it is tried again soon if it refused or closed another attempt: then it does
// start.
#include "backends/zookeeper/connect_attempts.hpp"

#include <algorithm>
#include <utility>

namespace dlock::zookeeper {
namespace {

constexpr Millis kFirstRound{400};
constexpr Millis kSingleServer{3'000};  // at least
constexpr unsigned kMostDoublings = 8;
constexpr unsigned kFull = 2;  // resets; a server that starts may reset a connection, too

Millis doubled(Millis time, unsigned times) {
  return time * (1U << std::min(times, kMostDoublings));
}

}  // namespace

void ConnectAttempts::begin(Deadline now) {
  began_ = now;
  ++count_;
  wants_lookup_ = count_ % servers_ == 0;
}

Deadline ConnectAttempts::give_up_at() const {
  Millis time = doubled(kFirstRound, count_ / servers_);
  if (servers_ == 1) {
    const bool starts = count_ > silences_ + 1;
    time = doubled(starts ? kSingleServer : std::max(most_ / 2, kSingleServer), silences_);
  }
  return after(began_, std::min(time, most_));
}

void ConnectAttempts::failed(bool reset) {
  ++failed_in_round_;
  resets_ = reset ? std::min(resets_ + 1, 2 * kFull) : std::max(resets_, 1U) - 1;
}

void ConnectAttempts::was_silent() { ++silences_; }

void ConnectAttempts::succeeded() { failed_in_round_ = resets_ = 0; }

void ConnectAttempts::answered() {
  count_ = silences_ = 0;
  wants_lookup_ = false;
}

bool ConnectAttempts::wants_lookup() { return std::exchange(wants_lookup_, false); }

bool ConnectAttempts::servers_are_full() const { return resets_ >= kFull; }

}  // namespace dlock::zookeeper
