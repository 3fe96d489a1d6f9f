#include <gtest/gtest.h>

#include "backends/redis/attempt.hpp"

namespace dlock::redis {
namespace {

using There = std::optional<NumbersThere>;

TEST(RedisSlots, TheLowestNumberThatAMajorityHasFree) {
  EXPECT_EQ(choose_slot(3, 2, {There{}, There{}, There{}}), 0u);
  EXPECT_EQ(choose_slot(3, 2, {NumbersThere{}, NumbersThere{}, std::nullopt}), 1u);
  EXPECT_EQ(choose_slot(3, 2, {NumbersThere{.taken = "100"}, NumbersThere{.taken = "000"}, {}}),
            2u);
  EXPECT_EQ(choose_slot(3, 2,
                        {NumbersThere{.taken = "100"}, NumbersThere{.taken = "000"},
                         NumbersThere{.taken = "010"}}),
            1u);
  EXPECT_EQ(choose_slot(3, 3,
                        {NumbersThere{.taken = "100"}, NumbersThere{.taken = "000"},
                         NumbersThere{.taken = "010"}}),
            3u);
}

TEST(RedisSlots, TheNumberThatAServerHasGivenGoesFirst) {
  EXPECT_EQ(choose_slot(3, 2, {NumbersThere{.given = 2}, NumbersThere{}}), 2u);
  EXPECT_EQ(choose_slot(3, 2, {NumbersThere{}, NumbersThere{.given = 3, .taken = "110"}}), 3u);
  // Another has it at too many servers.
  EXPECT_EQ(choose_slot(3, 2, {NumbersThere{.given = 2}, NumbersThere{.taken = "01"}, {}}), 1u);
}

TEST(RedisSlots, NoneIsLeft) {
  EXPECT_EQ(choose_slot(2, 2, {NumbersThere{.taken = "11"}, NumbersThere{}}), 0u);
  EXPECT_EQ(choose_slot(2, 2, {NumbersThere{.taken = "10"}, NumbersThere{.taken = "01"}}), 0u);
  EXPECT_EQ(choose_slot(0, 1, {NumbersThere{}}), 0u);
}

TEST(RedisSlots, OddAnswersDoNoHarm) {
  EXPECT_EQ(choose_slot(2, 2, {NumbersThere{.given = 7, .taken = "x1"}, NumbersThere{}}), 1u);
  EXPECT_EQ(choose_slot(2, 1, {NumbersThere{.taken = std::string(5'000, '1')}}), 0u);
}

class RedisSlotsAttempt : public testing::Test {
 protected:
  Deadline now = Clock::now();
  Attempt attempt{3, 2, now, Millis{10'000}, 2};
  Attempt::State state() const { return attempt.state(now); }
};

TEST_F(RedisSlotsAttempt, HasANumberOnceAMajorityHasItFree) {
  attempt.granted(0, 0, 1, {.given = 1});
  EXPECT_EQ(attempt.slot(), 0u);
  EXPECT_EQ(state(), Attempt::State::asking);
  attempt.granted(1, 0, 1, {.taken = "00"});
  EXPECT_EQ(attempt.slot(), 1u);
  EXPECT_EQ(state(), Attempt::State::writing);
  EXPECT_EQ(attempt.writers().size(), 2u);
  // From here on it is fixed.
  attempt.granted(2, 0, 1, {.taken = "10"});
  EXPECT_EQ(attempt.slot(), 1u);
  attempt.written(0, attempt.token());
  attempt.written(1, attempt.token());
  EXPECT_EQ(state(), Attempt::State::held);
  EXPECT_FALSE(attempt.lacks_number());
}

TEST_F(RedisSlotsAttempt, WaitsForAnotherServerIfAMajorityHasNoNumberFree) {
  attempt.granted(0, 0, 1, {.taken = "10"});
  attempt.granted(1, 0, 1, {.taken = "01"});
  EXPECT_EQ(state(), Attempt::State::asking);
  EXPECT_TRUE(attempt.lacks_number());
  attempt.granted(2, 0, 1, {.taken = "10"});
  EXPECT_EQ(attempt.slot(), 2u);
  EXPECT_EQ(state(), Attempt::State::writing);
}

TEST_F(RedisSlotsAttempt, FailsIfNoServerIsLeftThatCouldHaveOneFree) {
  attempt.granted(0, 0, 1, {.taken = "10"});
  attempt.granted(1, 0, 1, {.taken = "01"});
  attempt.silent(2);
  EXPECT_EQ(state(), Attempt::State::failed);
  EXPECT_TRUE(attempt.lacks_number());
  EXPECT_FALSE(attempt.lost_race());
}

TEST_F(RedisSlotsAttempt, AServerWhereAnotherHasTheNumberDoesNotCount) {
  for (const unsigned node : {0u, 1u, 2u}) attempt.granted(node, 0, 1);
  EXPECT_EQ(attempt.writers().size(), 3u);
  attempt.taken(2);
  EXPECT_EQ(state(), Attempt::State::writing);
  attempt.written(0, attempt.token());
  EXPECT_TRUE(attempt.lost_race());
  attempt.taken(1);
  EXPECT_EQ(state(), Attempt::State::failed);
  // Another one may be free.
  EXPECT_FALSE(attempt.lacks_number());
}

TEST_F(RedisSlotsAttempt, OfASingleServerHasTheNumberThatItGave) {
  Attempt single{1, 1, now, Millis{10'000}, 2};
  single.granted(0, 7, 0, {.given = 2});
  EXPECT_EQ(single.slot(), 2u);
  EXPECT_EQ(single.state(now), Attempt::State::held);
  Attempt exclusive{1, 1, now, Millis{10'000}};
  exclusive.granted(0, 7, 0, {.given = 2});
  EXPECT_EQ(exclusive.slot(), 0u);
}

}  // namespace
}  // namespace dlock::redis
