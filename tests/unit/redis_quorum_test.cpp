#include <gtest/gtest.h>

#include <array>

#include "backends/redis/quorum.hpp"

namespace dlock::redis {
namespace {

TEST(RedisQuorum, ForOneHolderItIsTheMajority) {
  constexpr std::array expected{1u, 2u, 2u, 3u, 3u, 4u, 4u};
  for (unsigned nodes = 1; nodes <= expected.size(); ++nodes) {
    EXPECT_EQ(quorum(nodes, 1), expected[nodes - 1]) << nodes;
  }
}

TEST(RedisQuorum, SoManyGrantsAreNeededThatOneHolderTooManyCannotBe) {
  for (unsigned nodes = 1; nodes <= 15; ++nodes) {
    for (unsigned slots = 1; slots <= 20; ++slots) {
      const unsigned needed = quorum(nodes, slots);
      EXPECT_LE(needed, nodes);
      // Each node grants at most `slots`: one holder more would need more grants than there are.
      EXPECT_GT((slots + 1) * needed, slots * nodes) << nodes << ' ' << slots;
      // And with one fewer it could be.
      EXPECT_LE((slots + 1) * (needed - 1), slots * nodes) << nodes << ' ' << slots;
    }
  }
  EXPECT_EQ(quorum(5, 2), 4u);
}

TEST(RedisQuorum, ManySlotsDoNotOverflow) {
  EXPECT_EQ(quorum(5, 1'000'000'000), 5u);
  EXPECT_EQ(quorum(5, UINT32_MAX), 5u);
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
