#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <set>

#include "backends/zookeeper/queue.hpp"

namespace dlock::zookeeper {
namespace {

using Kind = Decision::Kind;
using Names = std::vector<std::string>;

std::string place(int sequence, unsigned slots = 3) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%010d", sequence);
  return "slots-" + std::to_string(slots) + "-lock-" + text.data();
}

// The number to take; 0: it has to wait.
unsigned number(const Names& children, const std::string& own) {
  const Decision out = decide(children, own, false);
  EXPECT_EQ(out.kind, out.slot == 0 ? Kind::watch_children : Kind::granted);
  return out.slot;
}

TEST(ZookeeperSlots, AHolderTakesTheLowestNumberThatIsFree) {
  EXPECT_EQ(number({place(5)}, place(5)), 1U);
  EXPECT_EQ(number({place(4), place(5), "slot-1"}, place(5)), 2U);
  EXPECT_EQ(number({place(3), place(4), place(5), "slot-3", "slot-1"}, place(5)), 2U);
  EXPECT_EQ(number({place(4), place(5), "slot-3"}, place(5)), 1U);
  EXPECT_EQ(decide({place(5), "slot-2"}, place(5), true).slot, 0U) << "it has one";
}

TEST(ZookeeperSlots, WhileAllNumbersAreTakenItWaitsForAnyToGo) {
  EXPECT_EQ(number({place(5), place(6), "slot-1", "slot-2", "slot-3"}, place(6)), 0U);
  EXPECT_EQ(number({place(5, 1), "slot-1"}, place(5, 1)), 0U);
  EXPECT_EQ(number({place(5, 1), "slot-2"}, place(5, 1)), 1U);  // of a lock with more slots
}

TEST(ZookeeperSlots, OneThatIsNotAmongTheHoldersTakesNone) {
  const Names all{place(1), place(2), place(3), place(4), place(5), "slot-1"};
  EXPECT_EQ(decide(all, place(4), false).kind, Kind::watch_children);
  EXPECT_EQ(decide(all, place(4), false).slot, 0U);
  EXPECT_EQ(decide(all, place(5), false).kind, Kind::watch_node);
  EXPECT_EQ(decide(all, place(5), false).node, place(4));
  EXPECT_EQ(decide(all, place(9), false).kind, Kind::gone);
  EXPECT_EQ(decide({}, place(9), false).kind, Kind::gone);
  EXPECT_EQ(decide({place(1, 2), place(2, 3)}, place(2, 3), false).kind, Kind::refused);
}

TEST(ZookeeperSlots, AClientLeavesANumberToEachHolderBeforeItThatHasNone) {
  const Names all{place(1, 5), place(2, 5), place(3, 5), place(4, 5), "slot-1"};
  EXPECT_EQ(number(all, place(1, 5)), 2U);
  EXPECT_EQ(number(all, place(2, 5)), 2U);
  EXPECT_EQ(number(all, place(3, 5)), 3U);
  EXPECT_EQ(number(all, place(4, 5)), 4U);
  // The last free number is not left to anybody: those before it may wait for another one.
  EXPECT_EQ(number({place(1), place(2), place(3), "slot-2", "slot-3"}, place(3)), 1U);
}

// Many that come at once: each tries, all look, and those that lost try again.
TEST(ZookeeperSlots, ManyAtOnceNeedFewTries) {
  constexpr int kMany = 200;
  std::mt19937 random(5);
  Names children;
  for (int i = 0; i < kMany; ++i) children.push_back(place(i, kMany));
  std::vector<std::string> unnumbered = children;
  int rounds = 0;
  for (; !unnumbered.empty() && rounds < 5; ++rounds) {
    const Names seen = children;
    std::shuffle(unnumbered.begin(), unnumbered.end(), random);
    std::erase_if(unnumbered, [&](const std::string& own) {
      const std::string node = slot_node(number(seen, own));
      if (std::find(children.begin() + kMany, children.end(), node) != children.end()) return false;
      children.push_back(node);
      return true;
    });
  }
  EXPECT_EQ(rounds, 1);
  const std::set<std::string> numbers(children.begin() + kMany, children.end());
  EXPECT_EQ(numbers.size(), static_cast<std::size_t>(kMany));
  EXPECT_TRUE(numbers.contains("slot-1") && numbers.contains("slot-200"));
}

// Whatever is left there by whom: a holder takes a number of 1..N that is free, if there is one.
TEST(ZookeeperSlots, ANumberIsTakenWheneverOneIsFreeAndNeverTwice) {
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    const auto slots = static_cast<unsigned>(1 + random() % 6);
    Names all;
    for (int i = 0; i < 9; ++i) {
      if (random() % 3 != 0) all.push_back(place(i, slots));
    }
    std::set<unsigned> taken;
    for (unsigned slot = 1; slot <= slots + 1; ++slot) {
      if (random() % 2 == 0) continue;
      all.push_back(slot_node(slot));
      if (slot <= slots) taken.insert(slot);
    }
    std::shuffle(all.begin(), all.end(), random);
    const auto queue = queue_of(all);
    for (std::size_t i = 0; i < count_holders(queue); ++i) {
      const unsigned got = number(all, queue[i].name);
      EXPECT_EQ(got == 0, taken.size() == slots);
      EXPECT_LE(got, slots);
      EXPECT_FALSE(taken.contains(got));
    }
  }
}

}  // namespace
}  // namespace dlock::zookeeper
