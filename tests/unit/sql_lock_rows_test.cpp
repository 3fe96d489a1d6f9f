#include <gtest/gtest.h>

#include "backends/sql/lock_rows.hpp"

namespace dlock::sql {
namespace {

using Kind = Turn::Kind;

constexpr Claim kExclusive{Mode::exclusive, 1};
constexpr Claim kShared{Mode::shared, 1};
Claim slots(unsigned count) { return {Mode::slots, count}; }

LockRow row(const std::string& owner, Claim claim, unsigned slot = 0) {
  LockRow out;
  out.owner = owner;
  out.claim = claim;
  out.slot = slot;
  out.left = Millis{1'000};
  out.has_session = true;
  return out;
}
LockRow ended(LockRow row) {
  row.left = Millis{0};
  row.has_session = false;
  return row;
}
LockRow waiting(LockRow row) {
  row.role = LockRow::Role::waiter;
  return row;
}

Look look_at(std::vector<LockRow> rows) {
  Look look;
  look.rows = std::move(rows);
  return look;
}

// What it is, and the owner of the first row that is in the way.
std::pair<Kind, std::string> decided(std::vector<LockRow> rows, Claim claim,
                                     const std::string& own = "me") {
  const Look look = look_at(std::move(rows));
  const Decision decision = decide(look, claim, own);
  return {decision.kind, decision.first != nullptr ? decision.first->owner : ""};
}
using Decided = std::pair<Kind, std::string>;

TEST(SqlLockRows, AFreeLockIsGranted) {
  for (const Claim claim : {kExclusive, kShared, slots(2)}) {
    EXPECT_EQ(decided({}, claim), Decided(Kind::granted, ""));
  }
}

TEST(SqlLockRows, AHolderIsInTheWayOfAllButItsKind) {
  EXPECT_EQ(decided({row("a", kExclusive)}, kExclusive), Decided(Kind::wait_for_one, "a"));
  EXPECT_EQ(decided({row("a", kExclusive)}, kShared), Decided(Kind::wait_for_one, "a"));
  EXPECT_EQ(decided({row("a", kShared)}, kExclusive), Decided(Kind::wait_for_one, "a"));
  EXPECT_EQ(decided({row("a", kShared)}, kShared), Decided(Kind::granted, ""));
}

TEST(SqlLockRows, ClaimsThatDoNotMixAreRefused) {
  EXPECT_EQ(decided({row("a", slots(2))}, kExclusive), Decided(Kind::refused, "a"));
  EXPECT_EQ(decided({row("a", kShared)}, slots(2)), Decided(Kind::refused, "a"));
  EXPECT_EQ(decided({row("a", slots(2))}, slots(3)), Decided(Kind::refused, "a"));
}

// Slots: the oldest holder is the first.
TEST(SqlLockRows, WhenAllSlotsAreTakenAnyHolderIsWaitedFor) {
  const std::vector<LockRow> both{row("a", slots(2), 2), row("b", slots(2), 1)};
  EXPECT_EQ(decided(both, slots(2)), Decided(Kind::wait_for_any, "a"));
}

TEST(SqlLockRows, TheLowestFreeSlotIsTaken) {
  const Look look = look_at({row("a", slots(3), 1), row("b", slots(3), 3)});
  EXPECT_EQ(decide(look, slots(3), "me").slot, 2U);
  EXPECT_EQ(decide(look_at({}), kShared, "me").slot, 0U);
}

// It is over when its time has passed and its session has ended.
TEST(SqlLockRows, ALeaseThatIsOverIsTakenOver) {
  const Look look = look_at({ended(row("a", kExclusive))});
  const Decision decision = decide(look, kExclusive, "me");
  EXPECT_EQ(decision.kind, Kind::granted);
  ASSERT_EQ(decision.over.size(), 1U);
  EXPECT_EQ(decision.over.front(), &look.rows.front());

  LockRow has_session = row("a", kExclusive);
  has_session.left = Millis{-1};
  EXPECT_EQ(decided({has_session}, kExclusive), Decided(Kind::wait_for_one, "a"));
  LockRow has_time = row("a", kExclusive);
  has_time.has_session = false;
  EXPECT_EQ(decided({has_time}, kExclusive), Decided(Kind::wait_for_one, "a"));
  LockRow endless = ended(row("a", kExclusive));
  endless.left.reset();
  EXPECT_EQ(decided({endless}, kExclusive), Decided(Kind::wait_for_one, "a"));
}

// Where there is no gate.
TEST(SqlLockRows, WaitersBeforeTheOwnRowComeFirst) {
  const std::vector<LockRow> rows{row("a", kShared), waiting(row("b", kExclusive)),
                                  waiting(row("me", kShared)), waiting(row("c", kExclusive))};
  EXPECT_EQ(decided(rows, kShared), Decided(Kind::wait_for_one, "b"));
  EXPECT_EQ(decided(rows, kExclusive, "b"), Decided(Kind::wait_for_one, "a"));
  EXPECT_EQ(decided(rows, kShared, "new"), Decided(Kind::wait_for_one, "c"));
  EXPECT_EQ(decided({row("a", kShared), ended(waiting(row("b", kExclusive)))}, kShared),
            Decided(Kind::granted, ""));
}

std::optional<LockRow> parsed(Row row) {
  Answer answer;
  answer.rows.push_back(std::move(row));
  auto rows = lock_rows_of(answer);
  return rows.empty() ? std::nullopt : std::optional(rows.front());
}

const Row kRow{"me", "holder", "job", "slots", "3", "2", "7", "1000", "1500", "then", "9", "{}"};

TEST(SqlLockRows, ARowIsRead) {
  const auto row = parsed(kRow);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->owner, "me");
  EXPECT_EQ(row->role, LockRow::Role::holder);
  EXPECT_EQ(row->key, "job");
  EXPECT_EQ(row->claim, slots(3));
  EXPECT_EQ(row->slot, 2U);
  EXPECT_EQ(row->fence, 7U);
  EXPECT_EQ(row->age, Millis{1});
  EXPECT_EQ(row->left, Millis{2}) << "rounded up";
  EXPECT_EQ(row->expires_at, "then");
  EXPECT_TRUE(row->has_session);
  EXPECT_EQ(row->record, "{}");
}

TEST(SqlLockRows, ARowThatMakesNoSenseIsLeftOutOrHarmless) {
  Row row = kRow;
  row[1] = "?";
  EXPECT_FALSE(parsed(row));
  row = kRow;
  row.pop_back();
  EXPECT_FALSE(parsed(row));
  row = kRow;
  row[3] = "?";  // excludes all others
  EXPECT_EQ(parsed(row)->claim.mode, Mode::exclusive);
  row[4] = row[5] = row[6] = "-1";
  row[7] = "-1000";
  row[8] = row[9] = row[10] = std::nullopt;
  const auto out = parsed(row);
  EXPECT_EQ(out->claim.slots, 1U);
  EXPECT_EQ(out->fence, 0U);
  EXPECT_EQ(out->age, Millis{0});
  EXPECT_FALSE(out->left);
  EXPECT_FALSE(out->has_session);
}

TEST(SqlLockRows, HoldersAndWaitersAreShownAndTheOthersAreNot) {
  LockRow late = row("a", kShared);
  late.left = Millis{-5};
  LockRow broken = row("x", kShared);
  broken.role = LockRow::Role::broken;
  const std::vector<LockRow> rows{late, ended(row("y", kShared)), broken,
                                  waiting(row("b", kExclusive)),
                                  ended(waiting(row("z", kExclusive)))};
  const LockInfo info = lock_info("job", rows);
  EXPECT_EQ(info.mode, Mode::shared);
  ASSERT_EQ(info.holders.size(), 1U);
  EXPECT_EQ(info.holders[0].owner.id, "a");
  EXPECT_EQ(info.holders[0].expires, Millis{0});
  EXPECT_FALSE(info.holders[0].endless);
  ASSERT_EQ(info.waiters->size(), 1U);
  EXPECT_EQ(info.waiters->front().owner.id, "b");
}

}  // namespace
}  // namespace dlock::sql
