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
  return decide(children, own, true);
}
Kind kind(const Names& children, const std::string& own) { return decision(children, own).kind; }
std::string waits_for(const Names& children, const std::string& own) {
  const Decision out = decision(children, own);
  EXPECT_EQ(out.kind, Kind::watch_node);
  return out.node;
}

TEST(ZookeeperQueue, ADecisionNamesTheNodeToWatch) {
  const Names all{r(1), x(3), r(4), x(5), r(6), r(7)};
  EXPECT_EQ(kind(all, r(1)), Kind::granted);
  EXPECT_EQ(waits_for(all, x(3)), r(1));
  EXPECT_EQ(waits_for(all, r(7)), x(5));
  EXPECT_EQ(kind({s(1), s(2), s(3)}, s(3)), Kind::watch_children);
}

TEST(ZookeeperQueue, ARefusalNamesTheHoldersClaim) {
  EXPECT_EQ(decision({s(1, 2), s(2, 3)}, s(2, 3)).kind, Kind::refused);
  EXPECT_EQ(decision({s(1, 2), s(2, 3)}, s(2, 3)).held, (Claim{Mode::slots, 2}));
}

TEST(ZookeeperQueue, AClientThatIsNotThereIsGone) {
  EXPECT_EQ(kind({}, x(1)), Kind::gone);
  EXPECT_EQ(kind({x(2)}, x(1)), Kind::gone);
  EXPECT_EQ(kind({x(2), "junk"}, "junk"), Kind::gone);
}

TEST(ZookeeperQueue, ANameWithoutASequenceIsNotInTheWay) {
  EXPECT_EQ(kind({"junk", "lock-", x(2)}, x(2)), Kind::granted);
}

TEST(ZookeeperQueue, AnybodysNodeIsInTheWay) {
  const std::string theirs = "x-144c5a0d2b30001-0000000001";
  EXPECT_EQ(waits_for({theirs, x(2)}, x(2)), theirs);
  EXPECT_EQ(waits_for({theirs, r(2)}, r(2)), theirs);
}

TEST(ZookeeperQueue, AfterTheLargestNumberComesTheSmallest) {
  const Names all{x(INT32_MAX - 1), x(INT32_MAX), x(INT32_MIN), x(INT32_MIN + 1)};
  EXPECT_EQ(kind(all, x(INT32_MAX - 1)), Kind::granted);
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
  for (const NodeName& node : queue) {
    held += decide(all, node.name, true).kind == Kind::granted;
  }
  EXPECT_EQ(held, 1);
}

}  // namespace
}  // namespace dlock::zookeeper
