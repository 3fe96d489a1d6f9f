#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <set>

#include "backends/zookeeper/slots.hpp"

namespace dlock::zookeeper {
namespace {

using Kind = Decision::Kind;
using Names = std::vector<std::string>;

std::string place(int sequence, unsigned slots = 3) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%010d", sequence);
  return "slots-" + std::to_string(slots) + "-lock-" + text.data();
}

// What it is to take; 0: it has to wait.
unsigned number(const Names& children, const std::string& own, bool raced = false) {
  const Decision out = decide_number(children, own, raced);
  EXPECT_EQ(out.kind, out.number == 0 ? Kind::watch_children : Kind::held);
  return out.number;
}

TEST(ZookeeperSlots, ANumberHasANodeThatIsNotInTheQueue) {
  for (const unsigned slot : {1U, 9U, 10U, 1'024U, 99'999U}) {
    EXPECT_EQ(number_of(slot_node(slot)), slot);
    EXPECT_FALSE(parse_node(slot_node(slot)));
  }
  EXPECT_EQ(slot_node(3), "slot-3");
  for (const char* other :
       {"", "slot-", "slot-0", "slot-03", "slot-3 ", "slot--3", "slot-+3", "slot-x", "Slot-3",
        "slot-3000000000", "slot-0000000003", "_c_slot-3", "lock-3"}) {
    EXPECT_FALSE(number_of(other)) << other;
  }
}

// Curator compares what follows the last "lock-", or else the whole name; the recipe in C what
// follows the last "-".
TEST(ZookeeperSlots, OtherLibrariesSortItBehindTheQueue) {
  for (const unsigned slot : {1U, 3U, 1'024U}) {
    const std::string name = slot_node(slot);
    EXPECT_EQ(name.find("lock-"), std::string::npos);
    for (const char* sequence : {"0000000000", "0999999999", "-000000001"}) {
      EXPECT_GT(name, sequence);
      EXPECT_GT(name.substr(name.rfind('-') + 1), sequence);
    }
  }
}

TEST(ZookeeperSlots, AHolderTakesTheLowestNumberThatIsFree) {
  EXPECT_EQ(number({place(5)}, place(5)), 1U);
  EXPECT_EQ(number({place(4), place(5), "slot-1"}, place(5)), 2U);
  EXPECT_EQ(number({place(3), place(4), place(5), "slot-3", "slot-1"}, place(5)), 2U);
  EXPECT_EQ(number({place(4), place(5), "slot-3"}, place(5)), 1U);
}

// The first here is of a dlock that knows no numbers.
TEST(ZookeeperSlots, AHolderWithoutANumberTakesNone) {
  const Names all{place(1), place(2), "slot-1", place(3)};
  EXPECT_EQ(number(all, place(3)), 2U);
}

TEST(ZookeeperSlots, WhileAllNumbersAreTakenItWaitsForAnyToGo) {
  EXPECT_EQ(number({place(5), place(6), "slot-1", "slot-2", "slot-3"}, place(6)), 0U);
  EXPECT_EQ(number({place(5, 1), "slot-1"}, place(5, 1)), 0U);
  EXPECT_EQ(number({place(5, 1), "slot-2"}, place(5, 1)), 1U);  // of a lock with more slots
}

TEST(ZookeeperSlots, OneThatIsNotAmongTheHoldersTakesNone) {
  const Names all{place(1), place(2), place(3), place(4), place(5), "slot-1"};
  EXPECT_EQ(decide_number(all, place(4), false).kind, Kind::watch_children);
  EXPECT_EQ(decide_number(all, place(4), false).number, 0U);
  EXPECT_EQ(decide_number(all, place(5), false).kind, Kind::watch_node);
  EXPECT_EQ(decide_number(all, place(5), false).node, place(4));
  EXPECT_EQ(decide_number(all, place(9), false).kind, Kind::gone);
  EXPECT_EQ(decide_number({}, place(9), false).kind, Kind::gone);
  EXPECT_EQ(decide_number({place(1, 2), place(2, 3)}, place(2, 3), false).kind, Kind::conflict);
}

TEST(ZookeeperSlots, WhoHasLostARaceLeavesANumberToEachBeforeIt) {
  const Names all{place(1, 5), place(2, 5), place(3, 5), place(4, 5), "slot-1"};
  EXPECT_EQ(number(all, place(1, 5), true), 2U);
  EXPECT_EQ(number(all, place(2, 5), true), 2U);
  EXPECT_EQ(number(all, place(3, 5), true), 3U);
  EXPECT_EQ(number(all, place(4, 5), true), 4U);
  // Numbers of those that have lost their place are in nobody's way, and the last one is not
  // passed.
  EXPECT_EQ(number({place(1), place(2), place(3), "slot-2", "slot-3"}, place(3), true), 1U);
}

// Many that come at once: each tries, all look, and those that lost try again.
TEST(ZookeeperSlots, ManyAtOnceNeedFewTries) {
  constexpr int kMany = 200;
  std::mt19937 random(5);
  Names children;
  for (int i = 0; i < kMany; ++i) children.push_back(place(i, kMany));
  std::vector<std::string> unnumbered = children;
  bool raced = false;
  int rounds = 0;
  for (; !unnumbered.empty() && rounds < 5; ++rounds) {
    const Names seen = children;
    std::shuffle(unnumbered.begin(), unnumbered.end(), random);
    std::erase_if(unnumbered, [&](const std::string& own) {
      const std::string node = slot_node(number(seen, own, raced));
      if (std::find(children.begin() + kMany, children.end(), node) != children.end()) return false;
      children.push_back(node);
      return true;
    });
    raced = true;
  }
  EXPECT_LE(rounds, 4);
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
      const unsigned got = number(all, queue[i].name, random() % 2 == 0);
      EXPECT_EQ(got == 0, taken.size() == slots);
      EXPECT_LE(got, slots);
      EXPECT_FALSE(taken.contains(got));
    }
  }
}

}  // namespace
}  // namespace dlock::zookeeper
