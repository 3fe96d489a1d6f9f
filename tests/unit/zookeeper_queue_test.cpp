#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "backends/zookeeper/queue.hpp"

namespace dlock::zookeeper {
namespace {

using Kind = Decision::Kind;
using Names = std::vector<std::string>;

std::string number(long value) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%010ld", value);
  return text.data();
}
std::string x(long sequence) { return "lock-" + number(sequence); }
std::string r(long sequence) { return "__READ__" + number(sequence); }
std::string s(long sequence, int slots = 2) {
  return "slots-" + std::to_string(slots) + "-lock-" + number(sequence);
}

Decision decision(Names children, const std::string& own) {
  std::mt19937 random(7);
  std::shuffle(children.begin(), children.end(), random);  // the server's order means nothing
  return decide(queue_of(children), own);
}
Kind kind(const Names& children, const std::string& own) { return decision(children, own).kind; }
std::string waits_for(const Names& children, const std::string& own) {
  const Decision out = decision(children, own);
  EXPECT_EQ(out.kind, Kind::watch_node);
  return out.node;
}

TEST(ZookeeperQueue, ExclusiveIsHeldByTheFirstAndWaitsForTheOneBefore) {
  const Names all{x(3), x(5), r(7), x(9)};
  EXPECT_EQ(kind(all, x(3)), Kind::held);
  EXPECT_EQ(waits_for(all, x(5)), x(3));
  EXPECT_EQ(waits_for(all, x(9)), r(7));
}

TEST(ZookeeperQueue, SharedWaitsForTheNearestThatIsNot) {
  const Names all{r(1), r(2), x(3), r(4), x(5), r(6), r(7)};
  EXPECT_EQ(kind(all, r(1)), Kind::held);
  EXPECT_EQ(kind(all, r(2)), Kind::held);
  EXPECT_EQ(waits_for(all, x(3)), r(2));
  EXPECT_EQ(waits_for(all, r(4)), x(3));
  EXPECT_EQ(waits_for(all, x(5)), r(4));
  EXPECT_EQ(waits_for(all, r(6)), x(5));
  EXPECT_EQ(waits_for(all, r(7)), x(5));
}

// write, read, read, write, as in the recipe
TEST(ZookeeperQueue, ReadersBetweenWritersGoTogether) {
  EXPECT_EQ(waits_for({x(1), r(2), r(3), x(4)}, r(3)), x(1));
  const Names next{r(2), r(3), x(4)};
  EXPECT_EQ(kind(next, r(2)), Kind::held);
  EXPECT_EQ(kind(next, r(3)), Kind::held);
  EXPECT_EQ(waits_for(next, x(4)), r(3));
  EXPECT_EQ(waits_for({r(2), x(4)}, x(4)), r(2));
  EXPECT_EQ(kind({x(4)}, x(4)), Kind::held);
}

TEST(ZookeeperQueue, TheFirstThatWaitsForASlotWatchesAllAndTheOthersOneAnother) {
  const Names all{s(1), s(2), s(3), s(4), s(5)};
  EXPECT_EQ(kind(all, s(1)), Kind::held);
  EXPECT_EQ(kind(all, s(2)), Kind::held);
  EXPECT_EQ(kind(all, s(3)), Kind::watch_children);
  EXPECT_EQ(waits_for(all, s(4)), s(3));
  EXPECT_EQ(waits_for(all, s(5)), s(4));
  EXPECT_EQ(kind({s(2), s(3), s(4)}, s(3)), Kind::held);
}

TEST(ZookeeperQueue, SlotsDoNotMixWithAnythingElse) {
  EXPECT_EQ(kind({x(1), s(2)}, s(2)), Kind::conflict);
  EXPECT_EQ(kind({r(1), s(2)}, s(2)), Kind::conflict);
  EXPECT_EQ(kind({s(1), x(2)}, x(2)), Kind::conflict);
  EXPECT_EQ(kind({s(1), r(2)}, r(2)), Kind::conflict);
  EXPECT_EQ(kind({s(1, 2), s(2, 3)}, s(2, 3)), Kind::conflict);
}

// Somebody in another mode that is about to see that it has no place here.
TEST(ZookeeperQueue, WhoIsRefusedHoldsUpTheQueueOnlyUntilItHasGone) {
  const Names all{s(1, 3), x(2), s(3, 3), s(4, 3)};
  EXPECT_EQ(count_holders(queue_of(all)), 1U);
  EXPECT_EQ(waits_for(all, s(3, 3)), x(2));
  EXPECT_EQ(waits_for(all, s(4, 3)), s(3, 3));
}

TEST(ZookeeperQueue, WhoIsNotThereIsGone) {
  EXPECT_EQ(kind({}, x(1)), Kind::gone);
  EXPECT_EQ(kind({x(2)}, x(1)), Kind::gone);
  EXPECT_EQ(kind({x(2), "junk"}, "junk"), Kind::gone);
}

TEST(ZookeeperQueue, WhatIsNoLockIsNotInTheWay) {
  EXPECT_EQ(kind({"junk", "lock-", x(2)}, x(2)), Kind::held);
}

TEST(ZookeeperQueue, AnybodysNodeIsInTheWay) {
  const std::string theirs = "x-144c5a0d2b30001-0000000001";
  EXPECT_EQ(waits_for({theirs, x(2)}, x(2)), theirs);
  EXPECT_EQ(waits_for({theirs, r(2)}, r(2)), theirs);
}

TEST(ZookeeperQueue, AfterTheLargestNumberComesTheSmallest) {
  const Names all{x(INT32_MAX - 1), x(INT32_MAX), x(INT32_MIN), x(INT32_MIN + 1)};
  EXPECT_EQ(kind(all, x(INT32_MAX - 1)), Kind::held);
  EXPECT_EQ(waits_for(all, x(INT32_MAX)), x(INT32_MAX - 1));
  EXPECT_EQ(waits_for(all, x(INT32_MIN)), x(INT32_MAX));
  EXPECT_EQ(waits_for(all, x(INT32_MIN + 1)), x(INT32_MIN));
}

// So many numbers cannot be given at a time, but they can be made up.
TEST(ZookeeperQueue, MadeUpNumbersDoNoHarm) {
  Names all;
  std::mt19937 random(1);
  for (int i = 0; i < 2'000; ++i) {
    all.push_back("x" + std::to_string(i) + "-" + number(static_cast<std::int32_t>(random())));
  }
  const auto queue = queue_of(all);
  EXPECT_GT(queue.size(), 1'000U);
  int held = 0;
  for (const NodeName& node : queue) held += decide(queue, node.name).kind == Kind::held;
  EXPECT_EQ(held, 1);
}

// Whatever happens, somebody holds the lock, never too many, and everybody else watches something
// that changes before it can be its turn.
TEST(ZookeeperQueue, NobodyWaitsInVain) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    Names all;
    const bool slots = round % 3 == 0;
    const long start = round % 2 == 0 ? 1 : INT32_MAX - 4L;
    for (long i = 0; i < 9; ++i) {
      const auto sequence = static_cast<std::int32_t>(static_cast<std::uint32_t>(start + i));
      if (random() % 3 == 0) continue;
      all.push_back(slots ? s(sequence, 3) : random() % 2 == 0 ? x(sequence) : r(sequence));
    }
    while (!all.empty()) {
      const auto queue = queue_of(all);
      const std::size_t holders = count_holders(queue);
      ASSERT_GE(holders, 1U);
      for (std::size_t i = 0; i < queue.size(); ++i) {
        const Decision out = decide(queue, queue[i].name);
        if (i < holders) {
          EXPECT_EQ(out.kind, Kind::held);
        } else if (out.kind == Kind::watch_node) {
          const auto watched = std::find_if(
              queue.begin(), queue.end(), [&](const auto& node) { return node.name == out.node; });
          EXPECT_LT(watched - queue.begin(), static_cast<std::ptrdiff_t>(i));
        } else {
          EXPECT_EQ(out.kind, Kind::watch_children);
        }
      }
      all.erase(std::find(all.begin(), all.end(), queue[random() % holders].name));
    }
  }
}

}  // namespace
}  // namespace dlock::zookeeper
