#include <gtest/gtest.h>

#include "backends/zookeeper/connect_attempts.hpp"

namespace dlock::zookeeper {
namespace {

constexpr Deadline kBegin{};

Millis time_of(const ConnectAttempts& attempts) {
  return std::chrono::duration_cast<Millis>(attempts.give_up_at() - kBegin);
}

TEST(ZookeeperConnectAttempts, EachRoundOfAttemptsTakesTwiceAsLong) {
  ConnectAttempts attempts(Millis{5'000});
  attempts.set_servers(3);
  attempts.begin_round();
  for (const int expected : {400, 400, 800, 800, 800, 1'600}) {
    attempts.begin(kBegin);
    EXPECT_EQ(time_of(attempts), Millis{expected});
    attempts.was_silent();
    attempts.failed(false);
  }
  EXPECT_TRUE(attempts.all_failed());
  attempts.answered();
  attempts.begin(kBegin);
  EXPECT_EQ(time_of(attempts), Millis{400}) << "an answer begins anew";
}

TEST(ZookeeperConnectAttempts, NoAttemptTakesLongerThanTheConnectTimeout) {
  ConnectAttempts attempts(Millis{1'000});
  attempts.set_servers(2);
  for (int i = 0; i < 100; ++i) attempts.begin(kBegin);
  EXPECT_EQ(time_of(attempts), Millis{1'000});
}

TEST(ZookeeperConnectAttempts, ASingleServerIsGivenMoreTimeUnlessItStarts) {
  ConnectAttempts silent(Millis{20'000});
  silent.begin(kBegin);
  EXPECT_EQ(time_of(silent), Millis{10'000});
  ConnectAttempts starts(Millis{20'000});
  starts.begin(kBegin);
  starts.failed(true);
  starts.begin(kBegin);
  EXPECT_EQ(time_of(starts), Millis{3'000});
}

TEST(ZookeeperConnectAttempts, NamesAreResolvedAgainOnceInEachRound) {
  ConnectAttempts attempts(Millis{5'000});
  attempts.set_servers(2);
  attempts.begin(kBegin);
  EXPECT_FALSE(attempts.wants_lookup());
  attempts.begin(kBegin);
  EXPECT_TRUE(attempts.wants_lookup());
  EXPECT_FALSE(attempts.wants_lookup());
}

TEST(ZookeeperConnectAttempts, ServersThatGoOnResettingConnectionsAreFull) {
  ConnectAttempts attempts(Millis{5'000});
  attempts.failed(true);
  EXPECT_FALSE(attempts.servers_are_full()) << "a server that starts does that, too";
  attempts.failed(true);
  EXPECT_TRUE(attempts.servers_are_full());
  attempts.failed(false);
  EXPECT_FALSE(attempts.servers_are_full());
  attempts.failed(true);
  EXPECT_TRUE(attempts.servers_are_full());
  attempts.succeeded();
  EXPECT_FALSE(attempts.servers_are_full());
}

}  // namespace
}  // namespace dlock::zookeeper
