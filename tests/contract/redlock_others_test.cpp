// Clocks that are wrong, and other programs on the same servers.
#include <gtest/gtest.h>

#include <array>

#include "redlock_fixture.hpp"

namespace dlock::test {
namespace {

/// Five servers, some of them with a clock of their own.
class RedlockClocks : public RedlockTest {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server is not installed";
    // The last two, then the middle one, and the rest right.
    servers.emplace_back();
    servers.emplace_back();
    servers.emplace_back(RedisOptions{.clock = &middle});
    servers.emplace_back(RedisOptions{.clock = &last});
    servers.emplace_back(RedisOptions{.clock = &last});
    a = client();
    b = client();
  }
  void TearDown() override { servers.clear(); }

  FakeClock middle;
  FakeClock last;
  std::unique_ptr<Backend> a;
  std::unique_ptr<Backend> b;
};

TEST_F(RedlockClocks, TwoClocksThatJumpForwardLetNobodyElseIn) {
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 1)}) {
    SCOPED_TRACE(mode_name(wanted.mode));
    auto lease = hold(*a, wanted);
    ASSERT_TRUE(is_held_by(kEach, "job"));
    let_finish(*a);
    last.jump(Millis{60'000});
    ASSERT_TRUE(is_held_by(0b00111, "job"));  // expired there
    EXPECT_EQ(code_of(try_once(*b, rival_of(wanted))), Errc::busy);
    for (int i = 0; i < 2; ++i) {
      const auto renewed = renew_soon(*lease);
      EXPECT_TRUE(renewed) << renewed.error().message;
    }
    let_finish(*a);
    EXPECT_EQ(having(lock_of("job")), 0b00111U);
    EXPECT_EQ(code_of(try_once(*b, rival_of(wanted))), Errc::busy);
    const auto released = release(*lease);
    EXPECT_TRUE(released) << released.error().message;
    auto next = hold(*b, request("job"));
    EXPECT_GT(next->fence(), lease->fence());
    EXPECT_TRUE(release(*next));
    EXPECT_TRUE(only_counters_are_left());
  }
}

// FAULTS.md, C5: then two can be let in; the first hears of it, and the tokens are in order.
TEST_F(RedlockClocks, TheHolderHearsIfMostClocksJumpForward) {
  auto lease = hold(*a, request("job"));
  ASSERT_TRUE(is_held_by(kEach, "job"));
  let_finish(*a);
  last.jump(Millis{60'000});
  middle.jump(Millis{60'000});
  auto next = hold(*b, request("job"));
  ASSERT_TRUE(next);
  EXPECT_GT(next->fence(), lease->fence());
  const auto renewed = renew(*lease);
  ASSERT_FALSE(renewed);
  EXPECT_EQ(renewed.error().code, Errc::lost) << renewed.error().message;
  EXPECT_TRUE(renew_soon(*next));
}

TEST_F(RedlockClocks, ClocksThatRunBackKeepNobodyOutAfterARelease) {
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 1)}) {
    SCOPED_TRACE(mode_name(wanted.mode));
    auto lease = hold(*a, wanted);
    ASSERT_TRUE(is_held_by(kEach, "job"));
    let_finish(*a);
    last.jump(Millis{-3'600'000});
    EXPECT_GT(std::stol(servers[3].command("PTTL", lock_of("job"))), 3'000'000);
    // What most of them say counts.
    const LockInfo info = inspect(*b, "job");
    ASSERT_EQ(info.holders.size(), 1u);
    ASSERT_TRUE(info.holders[0].expires);
    EXPECT_LT(*info.holders[0].expires, Millis{31'000});
    EXPECT_TRUE(renew_soon(*lease));
    let_finish(*a);
    const LockInfo there = inspect(*connect_redis(servers[3].port()), "job");
    ASSERT_EQ(there.holders.size(), 1u);
    EXPECT_LT(*there.holders[0].expires, Millis{31'000});
    last.jump(Millis{-3'600'000});
    EXPECT_EQ(code_of(try_once(*b, rival_of(wanted))), Errc::busy);
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(only_counters_are_left());
    EXPECT_TRUE(is_free_for(*b, request("job")));
  }
}

// Its lock would stay there for an hour; the others do not ask it.
TEST_F(RedlockClocks, AClockThatRunsBackKeepsTheLockOfADeadHolderOnAMinorityOnly) {
  auto lease = hold(*a, request("job", Mode::exclusive, 1, Millis{1'000}));
  ASSERT_TRUE(is_held_by(kEach, "job"));
  let_finish(*a);
  last.jump(Millis{-3'600'000});
  lease.reset();
  const auto took = time_of([&] { lease = hold(*b, request("job")); });
  report("the next, after a ttl of 1 s with two clocks an hour back", took);
  ASSERT_TRUE(lease);
  // The server that is asked first is believed for as long as a waiter sleeps.
  EXPECT_LT(took, here(Millis{first_asked() >= 3 ? 4'500 : 2'500}));
  EXPECT_EQ(having(lock_of("job")), kEach);
  EXPECT_TRUE(renew_soon(*lease));
  EXPECT_TRUE(release(*lease));
}

TEST_F(RedlockClocks, ClocksThatAreFasterOrSlowerByATenthAreSurvivedByAMinority) {
  last.drift(100'000);
  middle.drift(-100'000);
  // For this ttl a server has 200 ms to answer, as much as for any.
  auto lease = hold(*a, request("job", Mode::exclusive, 1, Millis{4'000}));
  for (const Deadline end = in(6'000); Clock::now() < end;) {
    ASSERT_TRUE(renew_soon(*lease));
    EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
    util::wait_readable(-1, in(200));
  }
  EXPECT_TRUE(release(*lease));
}

/// Each of three servers has a clock of its own.
class RedlockClocksOfThree : public RedlockTest {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server is not installed";
    for (FakeClock& clock : clocks) servers.emplace_back(RedisOptions{.clock = &clock});
  }
  void TearDown() override { servers.clear(); }

  static constexpr Mask kAll = 0b111;
  std::array<FakeClock, 3> clocks;
};

// The lock of a dead holder would last there for an hour; the others have forgotten it.
TEST_F(RedlockClocksOfThree, AClockThatRunsBackWhereAWaiterWaitsKeepsItOutNoLonger) {
  for (const Mode mode : {Mode::exclusive, Mode::shared}) {
    SCOPED_TRACE(mode_name(mode));
    auto holder = client();
    auto lease = hold(*holder, request("job", Mode::exclusive, 1, Millis{1'500}));
    ASSERT_TRUE(is_held_by(kAll, "job", kAll));
    let_finish(*holder);
    Waiting waiting(client(), request("job", mode));
    ASSERT_TRUE(waiting.blocked());
    ASSERT_TRUE(eventually([&] { return having(names("job").queue, kAll) != 0; }));
    for (const unsigned node : members(having(names("job").queue, kAll))) {
      clocks[node].jump(Millis{-3'600'000});
    }
    lease.reset();
    const auto next = waiting.lease();
    ASSERT_TRUE(next);
    EXPECT_TRUE(release(*next));
    flush(kAll);
  }
}

// --- other programs

class RedlockPeers : public RedlockTest {
 protected:
  void SetUp() override {
    RedlockTest::SetUp();
    if (IsSkipped()) return;
    a = client("");
    b = client("");
  }
  /// As node-redlock does, on each of them.
  unsigned set_nx(Mask mask, const std::string& value) const {
    unsigned set = 0;
    for (const unsigned node : members(mask)) {
      if (servers[node].command("SET", "job", value, "NX", "PX", "60000") == "OK") ++set;
    }
    return set;
  }

  std::unique_ptr<Backend> a;
  std::unique_ptr<Backend> b;
};

TEST_F(RedlockPeers, APeerWithTheMajorityExcludesUsInEveryMode) {
  const std::string value = "0ae4f05ce1d83bdb2b1d4fe7c0bdfa43";
  for (const Mask taken : {0b00111U, 0b11010U, kEach}) {
    ASSERT_EQ(set_nx(taken, value), static_cast<unsigned>(std::popcount(taken)));
    for (const Request& wanted : {request("job"), shared("job"), slots("job", 2)}) {
      EXPECT_EQ(code_of(try_once(*a, wanted)), Errc::busy);
      EXPECT_EQ(having("job"), taken);
    }
    const LockInfo info = inspect(*a, "job");
    ASSERT_EQ(info.holders.size(), 1u);
    EXPECT_EQ(info.holders[0].owner.id, value);
    EXPECT_EQ(info.holders[0].foreign, "node-redlock");
    flush(kEach);
  }
}

TEST_F(RedlockPeers, WeExcludeAPeerOnAllServers) {
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 2)}) {
    auto lease = hold(*a, wanted);
    ASSERT_TRUE(eventually([&] { return having("job") == kEach; }));
    EXPECT_EQ(set_nx(kEach, "theirs"), 0U);
    EXPECT_TRUE(renew_soon(*lease));
    EXPECT_EQ(set_nx(kEach, "theirs"), 0U);
    EXPECT_TRUE(release(*lease));
    ASSERT_TRUE(eventually([&] { return having("job") == 0; }));
    EXPECT_EQ(set_nx(kEach, "theirs"), kServers);
    flush(kEach);
  }
}

TEST_F(RedlockPeers, APeerOnOneServerDoesNotStopUs) {
  ASSERT_EQ(set_nx(0b00001, "b4cc8000a83811eeaa5c0242ac120002"), 1U);
  auto lease = try_once(*a, request("job"));
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
  EXPECT_TRUE(renew_soon(**lease));
  EXPECT_TRUE(release(**lease));
  EXPECT_EQ(servers[0].command("GET", "job"), "b4cc8000a83811eeaa5c0242ac120002");
}

TEST_F(RedlockPeers, AWaiterGetsTheLockSoonAfterAPeerHasFreedIt) {
  ASSERT_EQ(set_nx(kEach, "theirs"), kServers);
  Waiting waiting(client(""), request("job"), in(6'000));
  ASSERT_TRUE(waiting.blocked());
  ASSERT_TRUE(eventually([&] { return having(redis::names_of("", "job").queue) != 0; }));
  for (const RedisServer& server : servers) server.command("DEL", "job");
  std::unique_ptr<Lease> lease;
  const auto took = time_of([&] { lease = waiting.lease(); });
  report("woken after a peer has freed all five", took);
  ASSERT_TRUE(lease);
  EXPECT_LT(took, here(Millis{2'000}));
}

// node-redlock frees its servers one after the other, and the one we look at may be the first.
TEST_F(RedlockPeers, AWaiterGetsTheLockAlsoIfAPeerFreesItSlowly) {
  for (const bool forward : {true, false}) {
    ASSERT_EQ(set_nx(kEach, "theirs"), kServers);
    Waiting waiting(client(""), request("job"), in(6'000));
    ASSERT_TRUE(waiting.blocked());
    ASSERT_TRUE(eventually([&] { return having(redis::names_of("", "job").queue) != 0; }));
    for (unsigned i = 0; i < kServers; ++i) {
      servers[forward ? i : kServers - 1 - i].command("DEL", "job");
      EXPECT_FALSE(waiting.done(100) && i + 1 < kQuorum);
    }
    std::unique_ptr<Lease> lease;
    const auto took = time_of([&] { lease = waiting.lease(); });
    report("woken after a peer has freed all five slowly", took);
    ASSERT_TRUE(lease);
    EXPECT_LT(took, here(Millis{2'000}));
    EXPECT_TRUE(release(*lease));
    flush(kEach);
  }
}

}  // namespace
}  // namespace dlock::test
