#include <gtest/gtest.h>

#include "backends/mysql/pulse.hpp"
#include "backends/mysql/sql.hpp"
#include "core/lock_record.hpp"

namespace dlock::mysql {
namespace {

constexpr Millis kTtl{30'000};
const Deadline kStart{};

std::string at(int second) { return "2026-11-27 00:00:0" + std::to_string(second) + ".000000"; }

Party holder(int expires_at) {
  Request request;
  request.ttl = kTtl;
  request.owner.id = "me";
  Party party;
  party.id = 7;
  party.kind = Kind::holder;
  party.left = Millis{1};  // by the clock of some server
  party.record = format_lock_record(request);
  party.expires_at = at(expires_at);
  return party;
}

bool is_over(const Pulse& pulse, Deadline now, int expires_at) {
  return pulse.is_over(now).find("(id = 7 AND expires_at = CAST(" + literal(at(expires_at)) +
                                 " AS DATETIME(6)))") != std::string::npos;
}

TEST(MysqlPulse, AHolderIsOverWhenItHasNotRenewedForItsTtl) {
  Pulse pulse;
  pulse.see({holder(1)}, kStart);
  EXPECT_FALSE(is_over(pulse, kStart + kTtl - Millis{1}, 1));
  pulse.see({holder(1)}, kStart + kTtl - Millis{1});
  EXPECT_TRUE(is_over(pulse, kStart + kTtl, 1));
}

TEST(MysqlPulse, EachRenewalBeginsALease) {
  Pulse pulse;
  pulse.see({holder(1)}, kStart);
  pulse.see({holder(2)}, kStart + kTtl);
  EXPECT_FALSE(is_over(pulse, kStart + kTtl, 1));
  EXPECT_FALSE(is_over(pulse, kStart + 2 * kTtl - Millis{1}, 2));
  EXPECT_TRUE(is_over(pulse, kStart + 2 * kTtl, 2));
}

TEST(MysqlPulse, ARowThatIsGoneIsForgotten) {
  Pulse pulse;
  pulse.see({holder(1)}, kStart);
  pulse.see({}, kStart + Millis{1});
  pulse.see({holder(1)}, kStart + kTtl);
  EXPECT_FALSE(is_over(pulse, kStart + kTtl, 1));
}

TEST(MysqlPulse, AWaiterHasALeaseToo) {
  Party waiter = holder(1);
  waiter.kind = Kind::waiter;
  waiter.record.clear();
  Pulse pulse;
  pulse.see({waiter}, kStart);
  EXPECT_FALSE(is_over(pulse, kStart + kWaiterLease - Millis{1}, 1));
  EXPECT_TRUE(is_over(pulse, kStart + kWaiterLease, 1));
}

// As it was written on a server that belonged to no cluster yet.
TEST(MysqlPulse, AWaiterWithoutAnEndIsOverWhenItsLeaseWouldBe) {
  Party waiter = holder(1);
  waiter.kind = Kind::waiter;
  waiter.expires_at.clear();
  Pulse pulse;
  pulse.see({waiter}, kStart);
  EXPECT_NE(pulse.is_over(kStart + kWaiterLease).find("(id = 7 AND expires_at IS NULL)"),
            std::string::npos);
}

// What dlock did not write has a ttl that nobody knows, or none.
TEST(MysqlPulse, WhatDlockDidNotWriteIsNeverOver) {
  Party strange = holder(1), endless = holder(1);
  strange.record = "{}";
  endless.left.reset();
  for (const Party& party : {strange, endless}) {
    Pulse pulse;
    pulse.see({party}, kStart);
    EXPECT_FALSE(is_over(pulse, kStart + 1'000 * kTtl, 1));
  }
}

}  // namespace
}  // namespace dlock::mysql
