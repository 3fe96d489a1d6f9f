// Requests of which nobody knows what became of them: what they do when they arrive after all.
#include <gtest/gtest.h>

#include <list>

#include "backends/redis/record.hpp"
#include "redlock_fixture.hpp"

namespace dlock::test {
namespace {

class RedlockDoubt : public RedlockTest {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server is not installed";
    start(3);
    put_proxies();
    direct = client();
    EXPECT_TRUE(release(*hold(*direct, request("teach"))));  // by EVALSHA only, from now on
    let_finish(*direct);
  }
  Mask having_the_lock() const { return having(lock_of("job"), kAll); }

  static constexpr Mask kAll = 0b111;
  std::unique_ptr<Backend> direct;
};

// A waiter that gets its majority while the server of its queue is silent: what it has sent there
// comes late, and gives it one more vote.  Nothing that it sends may take that from it again: with
// one other server cut off, a renewal that counted this vote would be worth nothing.
TEST_F(RedlockDoubt, AVoteThatCameLateIsNotTakenBackWhileTheLockIsHeld) {
  auto held = hold(*direct, request("job"));
  Waiting waiting(through_proxies(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  ASSERT_TRUE(eventually([&] { return having(names("job").queue, kAll) != 0; }));
  const Mask head = having(names("job").queue, kAll);
  for (const unsigned node : members(head)) proxies[node].delay_requests(Millis{2'000});
  EXPECT_TRUE(release(*held));
  auto lease = waiting.lease();
  ASSERT_TRUE(lease);
  EXPECT_TRUE(is_held_by(kAll, "job", kAll));
  const Deadline until = in(1'500);
  while (Clock::now() < until) {
    ASSERT_EQ(having_the_lock(), kAll);
    util::wait_readable(-1, in(20));
  }
  EXPECT_TRUE(renew_soon(*lease));
  for (Proxy& proxy : proxies) proxy.pass();
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(is_held_by(0, "job", kAll));
}

// As after a release that has not come through to the server in whose queue the others wait.
TEST_F(RedlockDoubt, WhatIsStaleAtTheQueueKeepsNobodyWaitingForATtl) {
  constexpr Millis kTtl{600'000};
  constexpr std::size_t kWaiters = 6;
  for (const Mode mode : {Mode::exclusive, Mode::shared, Mode::slots}) {
    const std::string key(mode_name(mode));
    SCOPED_TRACE(key);
    const Mode other = mode == Mode::shared ? Mode::exclusive : mode;
    auto lease = hold(*direct, request(key, mode, 1, kTtl));
    ASSERT_TRUE(lease);
    std::list<Waiting> waiting;
    Mask head = 0;
    while (waiting.size() < kWaiters) {
      waiting.emplace_back(client(), request(key, other, 1, kTtl));
      ASSERT_TRUE(waiting.back().blocked());
      ASSERT_TRUE(eventually([&] { return (head = having(names(key).queue, kAll)) != 0; }));
    }
    ASSERT_EQ(members(head).size(), 1u);
    for (const unsigned node : members(kAll & ~head)) {
      servers[node].command("DEL", names(key).lock, names(key).owner);
    }
    while (!waiting.empty()) {
      auto next = waiting.end();
      EXPECT_TRUE(eventually([&] {
        next = std::find_if(waiting.begin(), waiting.end(), [](Waiting& w) { return w.done(0); });
        return next != waiting.end();
      }));
      ASSERT_NE(next, waiting.end());
      auto granted = next->lease();
      EXPECT_TRUE(granted && release(*granted));
      waiting.erase(next);
    }
  }
}

// What was asked of a server that was silent comes when the lock was given back.
TEST_F(RedlockDoubt, AVoteThatComesAfterTheLockWasGivenBackIsNotGiven) {
  for (const Request& wanted : {request("job"), shared("job")}) {
    auto client = through_proxies();
    let_finish(*client);
    proxies[1].delay_requests(Millis{800});
    auto lease = hold(*client, wanted);
    ASSERT_TRUE(lease);
    util::wait_readable(-1, in(100));  // so that it is on its way
    proxies[1].pass();
    EXPECT_TRUE(release(*lease));
    const Deadline until = in(2'000);
    while (Clock::now() < until) {
      ASSERT_EQ(having_the_lock() & 0b010, 0U);
      util::wait_readable(-1, in(20));
    }
    client.reset();
  }
}

// Something that is left on the server of its queue makes a waiter ask all of them; what it finds
// there makes it wait in the queue of another.
TEST_F(RedlockDoubt, AWaiterThatMovesToAnotherQueueLeavesTheFirst) {
  auto held = hold(*direct, request("job", Mode::exclusive, 1, Millis{5'000}));
  let_finish(*direct);
  Waiting waiting(client(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  ASSERT_TRUE(eventually([&] { return having(names("job").queue, kAll) != 0; }));
  const Mask first = having(names("job").queue, kAll);
  redis::Record left{.acquired_at = "2026-11-26T03:04:05Z", .ttl = Millis{60'000}};
  left.owner.id = "0f3a0f3a0f3a0f3a0f3a0f3a0f3a0f3a";
  for (const unsigned node : members(first)) {
    servers[node].command("SET", names("job").owner, redis::format_record(left), "PX", "60000");
    servers[node].command("SET", lock_of("job"), left.owner.id, "PX", "60000");
  }
  EXPECT_TRUE(release(*held));
  auto next = hold(*direct, request("job"));
  ASSERT_TRUE(next);
  ASSERT_TRUE(eventually([&] { return (having(names("job").queue, kAll) & ~first) != 0; }));
  EXPECT_TRUE(eventually([&] { return (having(names("job").queue, kAll) & first) == 0; }));
  EXPECT_TRUE(release(*next));
  EXPECT_TRUE(release(*waiting.lease()));
  for (const unsigned node : members(first)) {
    servers[node].command("DEL", names("job").owner, lock_of("job"));
  }
  EXPECT_TRUE(only_counters_are_left(kAll));
}

// A look is no attempt, which gives up a server that is silent for a moment.
TEST_F(RedlockDoubt, AWaiterKeepsItsPlaceWhereTheServerOfItsQueueIsSlowForAWhile) {
  for (const Mode mode : {Mode::shared, Mode::slots}) {
    SCOPED_TRACE(mode_name(mode));
    const Mode other = mode == Mode::slots ? mode : Mode::exclusive;
    const Millis ttl{4'000};  // so each server has 200 ms for an attempt
    auto held = hold(*direct, request("job", other, 1, ttl));
    let_finish(*direct);
    Waiting waiting(through_proxies(), request("job", mode, 1, ttl));
    ASSERT_TRUE(waiting.blocked());
    ASSERT_TRUE(eventually([&] { return having(names("job").queue, kAll) != 0; }));
    const Mask first = having(names("job").queue, kAll);
    const unsigned node = members(first).at(0);
    const std::string entry = servers[node].command("ZRANGE", names("job").queue, "0", "-1");
    const std::string record = names("job").waiter + entry.substr(2);
    const auto lasts = [&] { return std::stol(servers[node].command("PTTL", record)); };
    proxies[node].delay_requests(Millis{300});
    const Deadline until = in(10'000);
    for (long before = lasts(), now = before; now <= before && Clock::now() < until;
         now = lasts()) {
      before = now;
      EXPECT_TRUE(renew_soon(*held));
      util::wait_readable(-1, in(200));
    }
    EXPECT_LT(Clock::now(), until);  // it has looked
    util::wait_readable(-1, in(700));
    EXPECT_EQ(having(names("job").queue, kAll), first);
    EXPECT_EQ(servers[node].command("ZRANGE", names("job").queue, "0", "-1"), entry);
    proxies[node].pass();
    EXPECT_TRUE(release(*held));
    EXPECT_TRUE(release(*waiting.lease()));
    let_finish(*direct);
  }
}

// It was granted to an id of the waiter that it does not use any more, and what was to take it back
// did not come through.  As long as it stands, one more server that fails keeps everybody out.
TEST_F(RedlockDoubt, AVoteForAnEarlierIdIsTakenBackByTheHolderAndByAWaiter) {
  const auto address = [&](unsigned node) { return std::to_string(proxies[node].port()); };
  unsigned far = 0;  // the last in the order of all clients: it is not where they wait
  for (unsigned node = 1; node < 3; ++node) far = address(node) > address(far) ? node : far;
  for (const bool by_holder : {true, false}) {
    auto held = hold(*direct, request("job", Mode::exclusive, 1, Millis{5'000}));
    ASSERT_TRUE(is_held_by(kAll, "job", kAll));
    servers[far].command("DEL", lock_of("job"), names("job").owner);
    auto client = through_proxies();
    let_finish(*client);  // it is connected, and cannot be again
    proxies[far].hold();
    proxies[far].refuse();
    for (unsigned node = 0; node < 3; ++node) {
      if (node != far) proxies[node].delay_requests(Millis{100});  // so that it is asked, too
    }
    Waiting waiting(std::move(client), request("job"));
    ASSERT_TRUE(is_held_by(kAll, "job", kAll));
    for (unsigned node = 0; node < 3; ++node) {
      if (node != far) proxies[node].pass();
    }
    ASSERT_TRUE(waiting.blocked());
    ASSERT_TRUE(eventually([&] { return having(names("job").queue, kAll) != 0; }));
    std::unique_ptr<Lease> lease;
    if (by_holder) {
      EXPECT_TRUE(release(*held));
      lease = waiting.lease();
      ASSERT_TRUE(lease);
      ASSERT_NE(servers[far].command("GET", lock_of("job")), lease->owner_id());
    }
    ASSERT_NE(servers[far].command("EXISTS", lock_of("job")), "0");
    heal(1U << far, Death::cut);
    EXPECT_TRUE(eventually([&] {
      EXPECT_TRUE(renew_soon(by_holder ? *lease : *held));
      util::wait_readable(-1, in(100));
      return servers[far].command("EXISTS", lock_of("job")) == "0";
    }));
    if (!by_holder) {
      EXPECT_TRUE(release(*held));
      lease = waiting.lease();
      ASSERT_TRUE(lease);
    }
    EXPECT_TRUE(release(*lease));
    let_finish(*direct);
  }
}

// --- a server that is far away

// Connecting, with a password, takes two round trips more than asking.
TEST_F(RedlockDoubt, ALeaseIsRenewedOverNewConnectionsAlsoWhereServersAreFarAway) {
  for (const RedisServer& server : servers) server.command("CONFIG", "SET", "requirepass", "pw");
  // The first renewal has to do; of some tries, as it has 200 ms, which may be little on a busy
  // machine.
  EXPECT_TRUE(eventually([&] {
    auto client = connect(":pw@" + addresses_of(proxies));
    auto lease = hold(*client, request("job"));
    for (Proxy& proxy : proxies) {
      proxy.delay_replies(Millis{120});
      proxy.cut();
    }
    const bool renewed = renew(*lease) && renew(*lease);
    for (Proxy& proxy : proxies) proxy.pass();
    EXPECT_TRUE(release(*lease));
    return renewed;
  }));
}

// The scripts are sent once more, which takes as long as asking, and nobody may wait for itself.
TEST_F(RedlockDoubt, AServerThatHasForgottenTheScriptsIsAskedAgainInTime) {
  auto client = through_proxies();
  const auto brief = [](const std::string& key) {
    return request(key, Mode::exclusive, 1, Millis{2'000});
  };
  EXPECT_TRUE(release(*hold(*client, brief("job"))));
  let_finish(*client);
  for (Proxy& proxy : proxies) proxy.delay_replies(Millis{60});
  const auto forget_scripts = [&] {
    for (const RedisServer& server : servers) server.command("SCRIPT", "FLUSH");
  };
  // The first renewal.  There are 100 ms for it, which may be little on a busy machine.
  int in_time = 0;
  for (int i = 0; i < 3 || (in_time == 0 && i < 30); ++i) {
    forget_scripts();
    std::unique_ptr<Lease> lease;
    EXPECT_LT(time_of([&] { lease = hold(*client, brief("job")); }), here(Millis{1'000}));
    ASSERT_TRUE(lease);
    forget_scripts();
    if (renew(*lease)) ++in_time;
    forget_scripts();
    EXPECT_TRUE(release(*lease));
  }
  EXPECT_GT(in_time, 0);
}

}  // namespace
}  // namespace dlock::test
