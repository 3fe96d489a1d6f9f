#include "engine/lease_schedule.hpp"

#include <gtest/gtest.h>

namespace dlock {
namespace {

constexpr Deadline kStart = Deadline(std::chrono::hours(1));
constexpr Millis kTtl{30'000};
constexpr Margins kMargins{Millis{5'000}};

Deadline at(int ms) { return kStart + Millis{ms}; }

LeaseSchedule granted() { return LeaseSchedule(at(30'000), kTtl, kMargins, 1); }

TEST(LeaseSchedule, RenewsWhenAThirdOfTheTtlHasPassed) {
  EXPECT_EQ(granted().next_attempt(), at(10'000));
}

TEST(LeaseSchedule, GivesUpInTimeToEndTheTree) {
  EXPECT_EQ(granted().give_up_at(), at(25'000));
  EXPECT_EQ(kMargins.kill_at(at(30'000)), at(29'500));
  EXPECT_EQ(kMargins.launcher_kills_at(at(30'000)), at(29'750));
}

TEST(LeaseSchedule, EndsTheTreeBeforeTheLeaseEvenWithoutPatience) {
  constexpr Margins none{Millis{0}};
  EXPECT_LT(none.term_at(at(1'000)), at(1'000));
  EXPECT_LT(none.launcher_kills_at(at(1'000)), at(1'000));
  EXPECT_LT(none.kill_at(at(1'000)), none.launcher_kills_at(at(1'000)));
}

TEST(LeaseSchedule, ASuccessMovesEverything) {
  LeaseSchedule schedule = granted();
  EXPECT_TRUE(schedule.renewed(at(10'000), at(10'100), at(40'000)));
  EXPECT_EQ(schedule.valid_until(), at(40'000));
  EXPECT_EQ(schedule.next_attempt(), at(20'000)) << "counted from the request, not from the answer";
}

TEST(LeaseSchedule, ALateSuccessIsALoss) {
  LeaseSchedule schedule = granted();
  EXPECT_FALSE(schedule.renewed(at(24'000), at(25'000), at(54'000)));
  EXPECT_EQ(schedule.valid_until(), at(30'000));
}

TEST(LeaseSchedule, AFailureIsTriedAgainAtOnceAndThenEverySecond) {
  LeaseSchedule schedule = granted();
  EXPECT_TRUE(schedule.failed(at(10'100))) << "the first in a row";
  EXPECT_EQ(schedule.next_attempt(), at(10'100));
  for (int now = 10'200; now < 20'000; now += 1'000) {
    EXPECT_FALSE(schedule.failed(at(now)));
    EXPECT_GE(schedule.next_attempt(), at(now + 500));
    EXPECT_LT(schedule.next_attempt(), at(now + 1'500));
  }
  EXPECT_TRUE(schedule.renewed(at(20'000), at(20'001), at(50'000)));
  EXPECT_TRUE(schedule.failed(at(30'000))) << "the first again";
}

TEST(LeaseSchedule, ALeaseWithoutAnEndIsLookedAtOnceAMinute) {
  LeaseSchedule schedule(kNever, kTtl, kMargins, 1);
  EXPECT_EQ(schedule.next_attempt(), kNever);
  EXPECT_EQ(schedule.give_up_at(), kNever);
  EXPECT_TRUE(schedule.renewed(at(0), at(1), kNever));
  EXPECT_EQ(schedule.next_attempt(), at(60'000));
  EXPECT_EQ(schedule.give_up_at(), kNever);
  schedule.failed(at(2));
  EXPECT_EQ(schedule.next_attempt(), at(2));
}

TEST(LeaseSchedule, AnAttemptLeavesTimeForAnother) {
  const LeaseSchedule schedule = granted();
  EXPECT_EQ(schedule.attempt_until(at(10'000)), at(15'000));
  EXPECT_EQ(schedule.attempt_until(at(24'000)), at(25'000)) << "and for the end of the tree";
}

TEST(LeaseSchedule, RenewsSoonerWhereTheServerGaveLess) {
  // 30 s were asked for, 6 s were given.
  LeaseSchedule schedule = granted();
  ASSERT_TRUE(schedule.renewed(at(10'000), at(10'001), at(16'000)));
  EXPECT_EQ(schedule.next_attempt(), at(13'000));
}

}  // namespace
}  // namespace dlock
