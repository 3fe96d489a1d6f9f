#include <gtest/gtest.h>

#include <array>

#include "backends/redis/quorum.hpp"

namespace dlock::redis {
namespace {

TEST(RedisQuorum, AnyTwoShareAServer) {
  constexpr std::array expected{1u, 2u, 2u, 3u, 3u, 4u, 4u};
  for (unsigned nodes = 1; nodes <= expected.size(); ++nodes) {
    EXPECT_EQ(quorum(nodes), expected[nodes - 1]) << nodes;
    EXPECT_GT(2 * quorum(nodes), nodes);
  }
}

TEST(RedisQuorum, ALeaseIsTrustedForLessThanItsTtlFromBeforeTheQuestion) {
  const Deadline asked = Clock::now();
  EXPECT_EQ(trusted_until(asked, Millis{30'000}), asked + Millis{30'000 - 600 - 2});
  EXPECT_EQ(trusted_until(asked, Millis{1'000}), asked + Millis{978});
  EXPECT_EQ(trusted_until(asked, Millis{10}), asked + Millis{8});
  EXPECT_EQ(drift_allowance(Millis{0}), Millis{2});
}

}  // namespace
}  // namespace dlock::redis
