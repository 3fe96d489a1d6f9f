#include <gtest/gtest.h>

#include "backends/sql/heartbeats.hpp"
#include "core/lock_record.hpp"

namespace dlock::sql {
namespace {

constexpr Millis kTtl{30'000};
const Deadline kStart{};

LockRow holder(int expires_at) {
  Request request;
  request.ttl = kTtl;
  request.owner.id = "me";
  LockRow row;
  row.owner = "me";
  row.left = Millis{1};  // by the clock of some server
  row.record = format_lock_record(request);
  row.expires_at = std::to_string(expires_at);
  return row;
}

bool is_alive(Heartbeats& heartbeats, const LockRow& row, Deadline now) {
  std::vector<LockRow> rows{row};
  heartbeats.judge(rows, now);
  return rows.front().is_alive();
}

TEST(SqlHeartbeats, AHolderIsOverWhenItHasNotRenewedForItsTtl) {
  Heartbeats heartbeats;
  EXPECT_TRUE(is_alive(heartbeats, holder(1), kStart));
  EXPECT_TRUE(is_alive(heartbeats, holder(1), kStart + kTtl - Millis{1}));
  EXPECT_FALSE(is_alive(heartbeats, holder(1), kStart + kTtl));
}

TEST(SqlHeartbeats, EachRenewalBeginsALease) {
  Heartbeats heartbeats;
  EXPECT_TRUE(is_alive(heartbeats, holder(1), kStart));
  EXPECT_TRUE(is_alive(heartbeats, holder(2), kStart + kTtl));
  EXPECT_TRUE(is_alive(heartbeats, holder(2), kStart + 2 * kTtl - Millis{1}));
  EXPECT_FALSE(is_alive(heartbeats, holder(2), kStart + 2 * kTtl));
}

TEST(SqlHeartbeats, ARowThatIsGoneIsForgotten) {
  Heartbeats heartbeats;
  EXPECT_TRUE(is_alive(heartbeats, holder(1), kStart));
  std::vector<LockRow> none;
  heartbeats.judge(none, kStart + Millis{1});
  EXPECT_TRUE(is_alive(heartbeats, holder(1), kStart + kTtl));
}

TEST(SqlHeartbeats, AWaiterHasALeaseToo) {
  LockRow waiter = holder(1);
  waiter.role = LockRow::Role::waiter;
  waiter.record.clear();
  Heartbeats heartbeats;
  EXPECT_TRUE(is_alive(heartbeats, waiter, kStart));
  EXPECT_TRUE(is_alive(heartbeats, waiter, kStart + kWaiterLease - Millis{1}));
  EXPECT_FALSE(is_alive(heartbeats, waiter, kStart + kWaiterLease));
}

TEST(SqlHeartbeats, AHolderThatAServerSawEndLongAgoIsOverAtOnce) {
  LockRow row = holder(1);
  row.left = -Heartbeats::kMostSkew + Millis{1};
  Heartbeats heartbeats;
  EXPECT_TRUE(is_alive(heartbeats, row, kStart));
  row.left = -Heartbeats::kMostSkew;
  EXPECT_FALSE(is_alive(heartbeats, row, kStart));
}

TEST(SqlHeartbeats, AHolderWithoutAnEndIsNeverOver) {
  LockRow endless = holder(1);
  endless.left.reset();
  Heartbeats heartbeats;
  EXPECT_TRUE(is_alive(heartbeats, endless, kStart));
  EXPECT_TRUE(is_alive(heartbeats, endless, kStart + 1'000 * kTtl));
}

}  // namespace
}  // namespace dlock::sql
