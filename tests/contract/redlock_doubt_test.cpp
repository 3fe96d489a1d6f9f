// Requests of which nobody knows what became of them: what they do when they arrive after all.
#include <gtest/gtest.h>

#include <list>

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
    teach_scripts();
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
  // The waiter has other names for the servers, so it may join at one that the grant has not
  // reached.
  ASSERT_TRUE(eventually([&] { return renew(*held) && having_the_lock() == kAll; }));
  Waiting waiting(through_proxies(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  ASSERT_TRUE(eventually([&] { return having(names("job").queue, kAll) != 0; }));
  const Mask head = having(names("job").queue, kAll);
  for (const unsigned node : members(head)) proxies[node].delay_requests(Millis{2'000});
  EXPECT_TRUE(release(*held));
  auto lease = waiting.lease();
  ASSERT_TRUE(lease);
  const auto having_the_grant = [&] {
    Mask out = 0;
    for (const unsigned node : members(kAll)) {
      if (servers[node].command("GET", lock_of("job")) == lease->owner_id()) out |= 1U << node;
    }
    return out;
  };
  EXPECT_TRUE(eventually([&] { return having_the_grant() == kAll; }));
  const Deadline until = in(1'500);
  while (Clock::now() < until) {
    ASSERT_EQ(having_the_grant(), kAll);
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

// The server in whose queue it waits falls silent, and it waits in that of another.
TEST_F(RedlockDoubt, AWaiterThatMovesToAnotherQueueLeavesNothingInTheFirst) {
  const auto holder = through_proxies();  // with the list that the waiter has
  auto held = hold(*holder, request("job"));
  let_finish(*holder);
  Waiting waiting(through_proxies(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  ASSERT_TRUE(eventually([&] { return having(names("job").queue, kAll) != 0; }));
  const Mask first = having(names("job").queue, kAll);
  strike(first, Death::silent);
  ASSERT_TRUE(eventually([&] { return (having(names("job").queue, kAll) & ~first) != 0; }));
  heal(first, Death::silent);
  EXPECT_TRUE(release(*held));
  auto lease = waiting.lease();
  ASSERT_TRUE(lease);
  EXPECT_TRUE(eventually([&] { return having(names("job").queue, kAll) == 0; }));
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(only_counters_are_left(kAll));
}

// Of which an answer that is late is no sign that it waits no more.
TEST_F(RedlockDoubt, AWaiterAsksEveryThreeSecondsAndKeepsItsPlace) {
  for (const Mode mode : {Mode::shared, Mode::slots}) {
    SCOPED_TRACE(mode_name(mode));
    const Mode other = mode == Mode::slots ? mode : Mode::exclusive;
    const auto holder = through_proxies();
    auto held = hold(*holder, request("job", other));
    let_finish(*holder);
    Waiting waiting(through_proxies(), request("job", mode));
    ASSERT_TRUE(waiting.blocked());
    ASSERT_TRUE(eventually([&] { return having(names("job").queue, kAll) != 0; }));
    const Mask first = having(names("job").queue, kAll);
    const unsigned node = members(first).at(0);
    const std::string entry = servers[node].command("ZRANGE", names("job").queue, "0", "-1");
    const std::string record = names("job").waiter + entry.substr(2);
    const auto lasts = [&] { return std::stol(servers[node].command("PTTL", record)); };
    for (int times = 0; times < 2; ++times) {
      EXPECT_LE(lasts(), 5'000);
      const auto took = time_of([&] {
        EXPECT_TRUE(eventually([&] { return lasts() < 4'000; }));
        EXPECT_TRUE(eventually([&] { return lasts() > 4'000; }));
      });
      EXPECT_LT(took, here(Millis{4'500}));
      EXPECT_TRUE(renew_soon(*held));
      EXPECT_EQ(servers[node].command("ZRANGE", names("job").queue, "0", "-1"), entry);
    }
    EXPECT_TRUE(release(*held));
    EXPECT_TRUE(release(*waiting.lease()));
    let_finish(*direct);
  }
}

// What was to undo it did not come through.  As long as it stands, one more server that fails would
// cost the holder its majority.
TEST_F(RedlockDoubt, AGrantOfAnEarlierRoundIsReplacedByTheHolder) {
  const Request wanted = request("job");
  auto lease = hold(*direct, wanted);
  ASSERT_TRUE(is_held_by(kAll, "job", kAll));
  let_finish(*direct);
  const std::string id = lease->owner_id();
  // As if the grant that is held were of the next round.
  auto other = client();
  const LockInfo lock = inspect(*other, "job");
  ASSERT_EQ(lock.holders.size(), 1u);
  const std::string earlier = wanted.owner.id + ":1";
  const std::string later = wanted.owner.id + ":2";
  ASSERT_EQ(id, earlier);
  for (const unsigned node : members(0b011)) {
    std::string its = servers[node].command("GET", names("job").owner);
    its.replace(its.find(earlier), earlier.size(), later);
    servers[node].command("SET", lock_of("job"), later, "PX", "30000");
    servers[node].command("SET", names("job").owner, its, "PX", "30000");
  }
  servers[2].command("SET", names("job").counter, "1");  // it has not voted for this round
  auto resumed = pick_up(*other, later);
  ASSERT_TRUE(resumed);
  EXPECT_TRUE(eventually([&] {
    EXPECT_TRUE(renew_soon(*resumed));
    return servers[2].command("GET", lock_of("job")) == later;
  }));
  EXPECT_TRUE(release(*resumed));
  EXPECT_TRUE(is_held_by(0, "job", kAll));
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
