#include "cli/lock_changes.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dlock::cli {
namespace {

LockInfo::Holder holder(const std::string& id, Millis held = Millis{0}, int pid = 1) {
  LockInfo::Holder out;
  out.owner = {.id = id, .host = "web-1", .pid = pid};
  out.held = held;
  return out;
}

LockInfo lock(const std::string& key, std::vector<LockInfo::Holder> holders,
              const std::vector<std::string>& waiters = {}) {
  LockInfo out{.key = key};
  out.holders = std::move(holders);
  out.waiters.emplace();
  for (const std::string& id : waiters) out.waiters->push_back({.owner = {.id = id}});
  return out;
}

// "-job:a +job:b w" in one line: what has gone, come, or stayed, of which key, and whether it
// waits.
std::string words(const std::vector<ChangedRow>& rows) {
  std::string out;
  for (const ChangedRow& it : rows) {
    out += (out.empty() ? "" : " ") + std::string(it.change == Change::gone   ? "-"
                                                  : it.change == Change::came ? "+"
                                                                              : "=");
    out += it.row.lock->key + ':';
    if (it.row.holder != nullptr) out += it.row.holder->owner.id;
    if (it.row.waiter != nullptr) out += it.row.waiter->owner.id + '?';
  }
  return out;
}

std::string compared(const std::vector<LockInfo>& before, const std::vector<LockInfo>& now) {
  return words(compare(before, now));
}

TEST(LockChanges, HoldersComeStayAndGo) {
  EXPECT_EQ(compared({}, {}), "");
  EXPECT_EQ(compared({}, {lock("a", {holder("x")})}), "+a:x");
  EXPECT_EQ(compared({lock("a", {holder("x")})}, {lock("a", {holder("x", Millis{9})})}), "=a:x");
  EXPECT_EQ(compared({lock("a", {holder("x")})}, {}), "-a:x");
}

TEST(LockChanges, TheSameKeyOfAnotherHolderIsAnotherHold) {
  EXPECT_EQ(compared({lock("a", {holder("x")})}, {lock("a", {holder("y")})}), "-a:x +a:y");
}

TEST(LockChanges, RowsAreSortedByKeyAndHoldersBySlot) {
  auto first = holder("x");
  auto second = holder("y");
  first.slot = 1;
  second.slot = 2;
  EXPECT_EQ(compared({lock("b", {holder("o")})},
                     {lock("a", {second, first}), lock("b", {}, {"w"}), lock("c", {holder("n")})}),
            "+a:x +a:y -b:o +b: +b:w? +c:n");
}

TEST(LockChanges, AWaiterThatHoldsTheLockNowHasNotGone) {
  EXPECT_EQ(compared({lock("a", {holder("x")}, {"y", "z"})}, {lock("a", {holder("y")}, {"z"})}),
            "-a:x +a:y =a:z?");
  EXPECT_EQ(compared({lock("a", {holder("x")}, {"y"})}, {lock("a", {holder("x")})}), "-a:y? =a:x");
}

TEST(LockChanges, ProgramsWithoutAnIdAreKnownByHostAndPid) {
  const std::vector<LockInfo> before{lock("a", {holder("", Millis{0}, 7)})};
  const std::vector<LockInfo> now{lock("a", {holder("", Millis{0}, 8)})};
  EXPECT_EQ(compared(before, before), "=a:");
  EXPECT_EQ(compared(before, now), "-a: +a:");
}

TEST(LockChanges, KeysThatLookAlikeAreNotTheSame) {
  EXPECT_EQ(compared({lock("a", {holder("hx")})}, {lock("ah", {holder("x")})}), "-a:hx +ah:x");
}

TEST(LockChanges, TooManyRowsLeaveTheLongestHeld) {
  const std::vector<LockInfo> now{lock("a", {holder("1", Millis{10})}),
                                  lock("b", {holder("2", Millis{30})}), lock("c", {}, {"w"}),
                                  lock("d", {holder("4", Millis{20})})};
  auto rows = compare(now, now);
  std::erase_if(rows, [](const ChangedRow& it) { return it.row.waiter != nullptr; });
  EXPECT_EQ(keep_longest_held(rows, 4), 0U);
  EXPECT_EQ(words(rows), "=a:1 =b:2 =c: =d:4");
  EXPECT_EQ(keep_longest_held(rows, 2), 2U);
  EXPECT_EQ(words(rows), "=b:2 =d:4");
  EXPECT_EQ(keep_longest_held(rows, 0), 2U);
  EXPECT_TRUE(rows.empty());
}

TEST(LockChanges, ASlowServerIsLookedAtLessOften) {
  EXPECT_EQ(interval_for(Millis{2'000}, Millis{0}), Millis{2'000});
  EXPECT_EQ(interval_for(Millis{2'000}, Millis{100}), Millis{2'000});
  EXPECT_EQ(interval_for(Millis{2'000}, Millis{101}), Millis{3'000});
  EXPECT_EQ(interval_for(Millis{1'000}, Millis{1'150}), Millis{23'000});
  EXPECT_EQ(interval_for(Millis{60'000}, Millis{1'150}), Millis{60'000});
}

}  // namespace
}  // namespace dlock::cli
