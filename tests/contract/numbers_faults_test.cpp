// Whatever becomes of a reply or a connection, no number is given twice; and what is special about
// one backend.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "mysql_fixture.hpp"
#include "redis_fixture.hpp"
#include "support/fake_clock.hpp"
#include "zookeeper_fixture.hpp"

namespace dlock::test {
namespace {

std::uint64_t must_take(Backend& backend, const std::string& name = "job") {
  const auto first = backend.take_numbers(name, 1, soon());
  EXPECT_TRUE(first) << first.error().message;
  return first ? first.value() : 0;
}

// Clients that take numbers over a connection that breaks again and again.
template <class Connect>
void expect_unique_over(Proxy& proxy, Connect connect) {
  std::mutex mutex;
  std::set<std::uint64_t> numbers;
  std::set<std::uint64_t> ids;
  std::atomic<int> taken = 0;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      std::unique_ptr<Backend> own = connect();
      std::uint64_t last = 0;
      while (!stop && own) {
        const auto first = own->take_numbers("job", 2, soon());
        const auto window = own->lease_window(Millis{2}, soon());
        const std::lock_guard lock(mutex);
        if (first) {
          EXPECT_GT(first.value(), last);
          last = first.value() + 1;
          EXPECT_TRUE(numbers.insert(first.value()).second) << first.value();
          EXPECT_TRUE(numbers.insert(last).second) << last;
          ++taken;
        }
        for (std::uint64_t ms = 0; window && ms < 2; ++ms) {
          EXPECT_TRUE(ids.insert(snowflake_id(window.value(), ms * kIdsPerMs)).second);
        }
      }
    });
  }
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  proxy.cut_often(seed, [&] { return taken > 20; });
  proxy.pass();
  const int before = taken;
  EXPECT_TRUE(eventually([&] { return taken > before; }));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(ids.size(), 0u);
}

class RedisNumberFaults : public RedisTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (server) proxy.emplace("127.0.0.1", server->port());
  }
  std::optional<Proxy> proxy;
};

TEST_F(RedisNumberFaults, ANumberWhoseReplyIsLostIsWasted) {
  const auto client = connect_redis(proxy->port());
  EXPECT_EQ(must_take(*client), 1u);
  proxy->lose_reply_to("EVAL");
  const auto lost = client->take_numbers("job", 1, soon());
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Errc::unreachable);
  EXPECT_EQ(must_take(*client), 3u);
}

TEST_F(RedisNumberFaults, NoneIsRepeatedOverABadNetwork) {
  expect_unique_over(*proxy, [&] { return connect_redis(proxy->port()); });
}

TEST_F(RedisNumberFaults, AUserWithTheRightsOfTheManPageHasNumbers) {
  server->run(user_with_few_rights("few"));
  const auto few = connect_redis(server->port(), {}, Millis{5'000}, "few:pw@");
  EXPECT_EQ(must_take(*few), 1u);
  const auto window = few->lease_window(Millis{1}, soon());
  EXPECT_TRUE(window) << window.error().message;
}

TEST_F(RedisNumberFaults, AnyPrefixKeepsThemOutOfTheList) {
  for (const std::string prefix : {"", "dlock:", "{app}", "{app}:", "dlock"}) {
    const auto client = connect_redis(server->port(), prefix);
    EXPECT_EQ(must_take(*client, "a"), 1u) << prefix;
    EXPECT_EQ(must_take(*client, "{app}a"), 1u) << prefix;
    EXPECT_TRUE(client->lease_window(Millis{1}, soon()));
    const auto locks = client->list("", soon());
    ASSERT_TRUE(locks);
    EXPECT_TRUE(locks.value().empty()) << prefix << ": " << locks.value()[0].key;
    server->command("FLUSHALL");
  }
}

class ZooKeeperNumbers : public ZooKeeperTest {};

TEST_F(ZooKeeperNumbers, NumbersWhoseReplyIsLostAreWasted) {
  const auto client = through_proxy();
  EXPECT_EQ(must_take(*client, "other"), 1u);
  // The path and the length of the data: so a request to write.
  const std::string write("%ids/job\0\0\0\1", 12);
  proxy->lose_reply_to(write);
  EXPECT_EQ(must_take(*client), 2u);
  EXPECT_EQ(proxy->lost_replies(), 1);
  proxy->lose_reply_to(write);
  EXPECT_EQ(must_take(*client), 4u);
  EXPECT_EQ(proxy->lost_replies(), 2);
}

TEST_F(ZooKeeperNumbers, NoneIsRepeatedOverABadNetwork) {
  expect_unique_over(*proxy, [&] { return through_proxy(); });
}

TEST_F(ZooKeeperNumbers, StayWhenEmptyContainersGo) {
  start(ZooKeeperOptions{.properties = {"-Dznode.container.checkIntervalMs=20"}});
  for (int round = 1; round <= 20; ++round) {
    auto lease = hold(*a, request("job"));  // the root is a container, or made anew
    ASSERT_TRUE(lease);
    EXPECT_TRUE(release(*lease));
    EXPECT_EQ(must_take(*b), static_cast<std::uint64_t>(round));
    EXPECT_TRUE(eventually([&] { return !nodes().exists("/dlock/job"); }));
  }
  EXPECT_TRUE(nodes().exists("/dlock/%ids/job"));
}

TEST_F(ZooKeeperNumbers, OfAUserAreTheirsAlone) {
  const auto joe = client({.auth = "joe:secret"});
  EXPECT_EQ(must_take(*joe), 1u);
  EXPECT_TRUE(joe->lease_window(Millis{1}, soon()));
  EXPECT_EQ(must_take(*client({.auth = "joe:secret"})), 2u);
  for (const std::string auth : {"", "eve:secret"}) {
    const auto other = client({.auth = auth});
    for (const std::string name : {"job", "new"}) {
      const auto refused = other->take_numbers(name, 1, soon());
      ASSERT_FALSE(refused) << auth;
      EXPECT_EQ(refused.error().code, Errc::denied) << refused.error().message;
    }
    const auto refused = other->lease_window(Millis{1}, soon());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::denied) << refused.error().message;
  }
}

TEST_F(ZooKeeperNumbers, WhatIsNoCounterIsLeftAlone) {
  EXPECT_EQ(must_take(*a), 1u);
  nodes().create("/dlock/%ids/x", "hello");
  const auto refused = a->take_numbers("x", 1, soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::conflict) << refused.error().message;
}

TEST_F(ZooKeeperNumbers, NeedTheChroot) {
  const auto lost = connect_zookeeper(server->url() + "/nowhere");
  for (const bool snowflake : {false, true}) {
    const auto error = snowflake ? error_of(lost->lease_window(Millis{1}, soon()))
                                 : error_of(lost->take_numbers("job", 1, soon()));
    EXPECT_EQ(error.code, Errc::invalid) << error.message;
    EXPECT_TRUE(says(error, "/nowhere")) << error.message;
  }
}

class MysqlNumbers : public MysqlTest {};

// Over a connection that may have been idle for long a statement is said once more.  It may have
// been carried out the first time, or the server has noticed before that the client was gone.
TEST_P(MysqlNumbers, ANumberWhoseReplyIsLostIsWasted) {
  const auto client = readable_through_proxy();
  EXPECT_EQ(must_take(*client), 1u);
  proxy->lose_reply_to("UPDATE dlock_records");
  const std::uint64_t next = must_take(*client);
  EXPECT_GE(next, 2u);
  EXPECT_LE(next, 3u);
  EXPECT_EQ(proxy->lost_replies(), 1);
  EXPECT_EQ(must_take(*client), next + 1);
  EXPECT_TRUE(client->lease_window(Millis{600'000}, soon()));
  proxy->lose_reply_to("UPDATE dlock_records");
  EXPECT_TRUE(client->lease_window(Millis{600'000}, soon()));
  EXPECT_EQ(proxy->lost_replies(), 2);
}

TEST_P(MysqlNumbers, NoneIsRepeatedOverABadNetwork) {
  expect_unique_over(*proxy, [&] { return through_proxy(); });
}

TEST_P(MysqlNumbers, AClockThatIsSetBackRepeatsNothing) {
  FakeClock clock;
  start({.environment = clock.environment()});
  std::set<std::uint64_t> ids;
  for (const Millis jump : {Millis{-3'600'000}, Millis{3'600'000}, Millis{-1'000}, Millis{0}}) {
    for (unsigned i = 0; i < 50; ++i) {
      const auto window = a->lease_window(Millis{1}, soon());
      ASSERT_TRUE(window) << window.error().message;
      EXPECT_TRUE(ids.insert(snowflake_id(window.value(), 0)).second);
    }
    clock.jump(jump);
  }
}

TEST_P(MysqlNumbers, AreNotSweptWithTheKeysThatNobodyUses) {
  FakeClock clock;
  start({.environment = clock.environment()});
  EXPECT_EQ(must_take(*a), 1u);
  EXPECT_TRUE(a->lease_window(Millis{1}, soon()));
  clock.jump(Millis{30LL * 86'400'000});
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(is_free_for(*a, request(std::to_string(i))));
  EXPECT_EQ(must_take(*a), 2u);
  EXPECT_EQ(number("SELECT COUNT(*) FROM dlock_records"), 2);
}

TEST_P(MysqlNumbers, LeaveNoTransactionOpen) {
  EXPECT_EQ(must_take(*a), 1u);
  EXPECT_TRUE(a->lease_window(Millis{1}, soon()));
  EXPECT_EQ(number("SELECT COUNT(*) FROM information_schema.innodb_trx"), 0);
}

// The others do the same.
INSTANTIATE_TEST_SUITE_P(, MysqlNumbers, testing::Values("table"),
                         [](const auto& its) { return std::string(its.param); });

}  // namespace
}  // namespace dlock::test
