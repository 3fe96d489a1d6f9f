#include <gtest/gtest.h>

#include <random>

#include "backends/zookeeper/loss_clock.hpp"

namespace dlock::zookeeper {
namespace {

constexpr Millis kTimeout{10'000};

Deadline at(int ms) { return Deadline{} + Millis{1'000'000 + ms}; }

class ZookeeperLossClock : public testing::Test {
 protected:
  void SetUp() override {
    clock.opened(at(0), at(0), kTimeout);
    clock.proved(at(0), at(0));
  }
  Millis left(int ms) const {
    return std::chrono::duration_cast<Millis>(clock.valid_until() - at(ms));
  }
  void proved(int ms) { clock.proved(at(ms), at(ms)); }
  LossClock clock;
};

TEST_F(ZookeeperLossClock, AProvenConnectionIsGoodForAlmostTheWholeTimeout) {
  EXPECT_LT(left(0), kTimeout);
  EXPECT_GT(left(0), kTimeout * 9 / 10);
}

// The leader that has accepted it may be cut off, and answer syncs, too.
TEST_F(ZookeeperLossClock, WithoutAMajorityTheEndStays) {
  LossClock unproven;
  unproven.opened(at(0), at(0), kTimeout);
  EXPECT_FALSE(unproven.is_fresh(at(0)));

  const Deadline end = clock.valid_until();
  for (int ms = 500; ms < 8'000; ms += 500) clock.synced(at(ms), at(ms));
  EXPECT_EQ(clock.valid_until(), end);
  clock.opened(at(8'000), at(8'000), kTimeout);
  EXPECT_EQ(clock.valid_until(), end);
  proved(8'000);
  EXPECT_TRUE(clock.is_fresh(at(8'000)));
}

TEST_F(ZookeeperLossClock, AnAnswerMovesTheEnd) {
  const Deadline before = clock.valid_until();
  proved(1);
  EXPECT_GT(clock.valid_until(), before);
}

TEST_F(ZookeeperLossClock, AnAnswerProvesOnlyWhatWasSaidAQuarterBefore) {
  proved(5'000);
  EXPECT_LE(left(0), kTimeout);  // nothing was said since 0
  proved(7'499);
  EXPECT_LE(left(0), kTimeout);
  proved(7'500);
  EXPECT_GT(left(5'000), kTimeout * 9 / 10);
  EXPECT_LE(left(5'000), kTimeout);
}

// It may have come to the server as late as its answer.
TEST_F(ZookeeperLossClock, WhatWasAnsweredLateIsProvenLate) {
  clock.proved(at(1'000), at(4'000));
  clock.proved(at(6'000), at(6'000));
  EXPECT_LE(left(0), kTimeout);
  clock.proved(at(6'500), at(6'500));
  EXPECT_GT(left(1'000), kTimeout * 9 / 10);
}

TEST_F(ZookeeperLossClock, AtItsPaceMostOfTheTimeoutIsLeft) {
  const int step = static_cast<int>(clock.interval().count());
  int now = 0;
  for (int i = 0; i < 100; ++i) proved(now += step);
  EXPECT_GT(left(now), kTimeout * 7 / 10);
}

// A waiter sends a sync at this pace, and one more when its turn comes, at whatever moment.
TEST_F(ZookeeperLossClock, AtItsPaceOneMoreAnswerIsEnoughForAHold) {
  const int step = static_cast<int>(clock.interval().count());
  int now = 0;
  for (int i = 0; i < 100; ++i, now += step) clock.synced(at(now + step), at(now + step));
  EXPECT_EQ(clock.next_sync(), at(now + step));
  EXPECT_FALSE(clock.is_fresh(at(now)));
  for (int more = 0; more <= step; more += 10) {
    LossClock turn = clock;
    turn.proved(at(now + more), at(now + more));
    EXPECT_TRUE(turn.is_fresh(at(now + more))) << more;
  }
}

TEST_F(ZookeeperLossClock, AfterAPauseSeveralAnswersAreNeededForAHold) {
  EXPECT_TRUE(clock.is_fresh(at(0)));
  EXPECT_FALSE(clock.is_fresh(at(9'000)));
  proved(9'000);
  EXPECT_FALSE(clock.is_fresh(at(9'000)));
  while (!clock.is_fresh(clock.next_sync())) {
    clock.proved(clock.next_sync(), clock.next_sync());
    ASSERT_LT(clock.next_sync(), at(20'000));
  }
  EXPECT_GE(clock.next_sync(), at(11'500));
}

TEST_F(ZookeeperLossClock, ANewConnectionBeginsAnew) {
  proved(9'000);
  clock.opened(at(12'000), at(12'000), Millis{4'000});
  proved(12'000);
  EXPECT_GT(left(12'000), Millis{3'600});
  EXPECT_LT(left(12'000), Millis{4'000});
}

// A server that passes on what it heard each half tick, and may stop to at any moment: the leader
// never ends the session before.
TEST_F(ZookeeperLossClock, TheSessionOutlivesIt) {
  std::mt19937 random(5);
  for (int round = 0; round < 2'000; ++round) {
    LossClock tested;
    tested.opened(at(0), at(0), kTimeout);
    tested.proved(at(0), at(0));
    const int half_tick =
        1 + static_cast<int>(random() % 2'500);  // two ticks are the least timeout
    const int phase = static_cast<int>(random() % static_cast<unsigned>(half_tick));
    std::vector<int> heard{0};  // by the server
    int now = 0;
    for (int i = 0; i < 20; ++i) {
      const int sent = now + static_cast<int>(random() % 2'000);
      const int arrived = sent + static_cast<int>(random() % 2'000);
      now = arrived + static_cast<int>(random() % 500);
      // Until the sync went through, the leader has heard what the server had before the leader's
      // last question.
      const int question = arrived - (arrived + phase) % half_tick;
      int known = 0;
      for (const int word : heard) {
        if (word <= question) known = word;
      }
      heard.push_back(arrived);
      tested.proved(at(sent), at(now));
      EXPECT_LT(tested.valid_until(), at(known) + kTimeout);
    }
  }
}

}  // namespace
}  // namespace dlock::zookeeper
