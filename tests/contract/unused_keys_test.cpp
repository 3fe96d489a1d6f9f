// Keys that nobody uses any more leave nothing behind: a week later by the service's clock.  That
// of ZooKeeper is in zookeeper_test.cpp; the lock files of the file backend stay until boot.
#include <gtest/gtest.h>

#include <atomic>
#include <list>
#include <thread>

#include "fixtures.hpp"
#include "mysql_fixture.hpp"
#include "support/fake_clock.hpp"
#include "support/redis_server.hpp"

namespace dlock::test {
namespace {

constexpr int kKeys = 60;
constexpr Millis kLater{8 * 24 * 3'600'000LL};
constexpr Millis kUnusedTtl{1'000};

std::string key(int number) { return "build " + std::to_string(number); }

// In all modes; and every tenth holder dies.
void use_keys(Backend& backend) {
  for (int i = 0; i < kKeys; ++i) {
    const Mode mode = i % 3 == 0 ? Mode::exclusive : i % 3 == 1 ? Mode::shared : Mode::slots;
    auto lease = hold(backend, request(key(i), mode, mode == Mode::slots ? 3 : 1, kUnusedTtl));
    ASSERT_TRUE(lease);
    if (i % 10 != 0) {
      EXPECT_TRUE(release(*lease));
    }
  }
}

// The parameter is how many servers there are.
class UnusedKeys : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (find_backend("redis")->open == nullptr || !RedisServer::available()) {
      GTEST_SKIP() << "no redis-server, or dlock was built without it";
    }
  }
  void start() {
    std::string url = GetParam() == 1 ? "redis://" : "redlock://";
    for (std::size_t i = 0; i < GetParam(); ++i) {
      servers.emplace_back(RedisOptions{.clock = &clock});
      url += (i == 0 ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(servers.back().port());
    }
    backend = open_url(url);
  }

  FakeClock clock;
  std::list<RedisServer> servers;
  std::unique_ptr<Backend> backend;
};

TEST_P(UnusedKeys, LeaveNothingOnRedisServers) {
  start();
  use_keys(*backend);
  const auto keys = [&] {
    std::string out;
    for (const RedisServer& server : servers) out += server.command("KEYS", "*");
    return out;
  };
  clock.jump(Millis{6 * 24 * 3'600'000LL});
  EXPECT_NE(keys().find("}:fence"), std::string::npos) << "forgotten too soon";
  clock.jump(Millis{2 * 24 * 3'600'000LL});
  EXPECT_TRUE(eventually([&] { return keys().empty(); })) << "LEFT BEHIND: " << keys();
}

// Whatever the clock says, a fence does not go back.
TEST_P(UnusedKeys, AreNotForgottenWhileTheirFenceIsAheadOfTheClock) {
  clock.jump(kLater);
  start();
  std::uint64_t last = 0;
  const auto grows = [&] {
    auto lease = hold(*backend, request("job"));
    ASSERT_TRUE(lease && lease->fence());
    EXPECT_GT(*lease->fence(), last);
    last = *lease->fence();
    EXPECT_TRUE(release(*lease));
  };
  grows();
  clock.jump(-kLater);
  grows();
  clock.jump(kLater);
  grows();
}

INSTANTIATE_TEST_SUITE_P(, UnusedKeys, testing::Values(1U, 3U),
                         [](const auto& servers) { return "of_" + std::to_string(servers.param); });

class MysqlUnusedKeys : public MysqlTest {
 protected:
  FakeClock clock;
};

INSTANTIATE_TEST_SUITE_P(, MysqlUnusedKeys, testing::Values("table", "version"), mysql_name);

TEST_P(MysqlUnusedKeys, LeaveNothingAndWhatIsInUseStays) {
  start({.environment = clock.environment()});
  const Request in_use = request("in use", Mode::exclusive, 1, Millis{60'000});
  auto lease = hold(*a, in_use);
  ASSERT_TRUE(lease);
  Waiting waiting(client(), request("in use"));
  ASSERT_TRUE(waiting.blocked());
  use_keys(*b);
  b = client();  // those that have died have no sessions
  clock.jump(kLater);
  const auto left = [&] {
    return number(
        "SELECT (SELECT COUNT(*) FROM dlock_keys WHERE name LIKE 'build%') + (SELECT "
        "COUNT(*) FROM dlock_locks WHERE name LIKE 'build%')");
  };
  EXPECT_GT(left(), kKeys);
  // Rows go a few at a time, whoever acquires whatever lock.
  const auto sweep = [&] {
    EXPECT_TRUE(is_free_for(*b, request("other")));
    return left();
  };
  int acquired = 0;
  while (sweep() > 0 && acquired < 10 * kKeys) {
    if (++acquired == kKeys) clock.jump(kLater);
  }
  EXPECT_EQ(left(), 0) << "LEFT BEHIND: "
                       << server->ask("SELECT * FROM dlock_keys WHERE name LIKE 'build%'");
  RecordProperty("acquired", acquired);
  EXPECT_TRUE(renew(*lease));
  EXPECT_EQ(inspect(*b, "in use").waiters->size(), 1u);
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(waiting.lease());
}

// An administrator has made it endless, and has a transaction open on its row: nobody waits for
// that.
TEST_P(MysqlUnusedKeys, WhatAnAdministratorKeepsStaysAndHoldsNobodyUp) {
  auto lease = hold(*a, request("kept"));
  ASSERT_TRUE(lease);
  kill_session(session_of("role = 'holder'"));
  lease.reset();
  server->ask(
      "UPDATE dlock_keys SET version = 1; UPDATE dlock_locks SET since = since - INTERVAL "
      "30 DAY, expires_at = NULL");
  std::thread transaction([&] {
    server->ask(
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION; SELECT * FROM "
        "dlock_locks FOR UPDATE; DO SLEEP(3); ROLLBACK");
  });
  EXPECT_TRUE(processes_become(1, "info LIKE 'DO SLEEP%'"));
  EXPECT_LT(time_of([&] { EXPECT_TRUE(is_free_for(*b, request("other"))); }), here(Millis{1'500}));
  transaction.join();
  b = client();
  EXPECT_TRUE(is_free_for(*b, request("other")));
  EXPECT_EQ(number("SELECT COUNT(*) FROM dlock_locks WHERE expires_at IS NULL"), 1);
  EXPECT_EQ(number("SELECT COUNT(*) FROM dlock_locks"), 1);
}

// Names that are used once, behind some that are in use; those of another method; and a holder that
// has died among few other rows.
TEST_P(MysqlUnusedKeys, AreFoundWhereverTheyAre) {
  make_tables();
  const auto insert_keys = [&](int count, const std::string& rows) {
    server->ask(
        "INSERT INTO dlock_keys WITH RECURSIVE numbers AS (SELECT 1 AS seq UNION ALL SELECT seq + "
        "1 FROM numbers WHERE seq < " +
        std::to_string(count) + ") SELECT " + rows);
  };
  insert_keys(30, method_text() + ", CONCAT('pr-', 10000 + seq), 1 FROM numbers");
  insert_keys(20,
              "method, CONCAT('backup-', seq), 1000 * UNIX_TIMESTAMP() FROM numbers JOIN (SELECT 1 "
              "AS method UNION SELECT 2 UNION SELECT 3) AS methods");
  const auto add_lock = [&](const std::string& owner, const std::string& age) {
    server->ask(
        "INSERT INTO dlock_locks (owner, method, name, role, slot, mode, slots, fence, since, "
        "expires_at, record) SELECT '" +
        owner + "', " + method_text() +
        ", 'died', 'holder', 0, 'shared', 1, 1, UTC_TIMESTAMP() - INTERVAL " + age +
        ", UTC_TIMESTAMP() - INTERVAL " + age + ", ''");
  };
  add_lock("x1", "30 DAY");
  add_lock("x2", "1 SECOND");
  const auto left = [&] {
    return number("SELECT COUNT(*) FROM dlock_keys WHERE name LIKE 'pr-%' AND version = 1") +
           number("SELECT COUNT(*) FROM dlock_locks WHERE owner = 'x1'");
  };
  for (int i = 0; i < 1'000 && left() > 0; ++i) {
    EXPECT_TRUE(is_free_for(*b, request("pr-2" + std::to_string(i))));
  }
  EXPECT_EQ(left(), 0) << "LEFT BEHIND: "
                       << server->ask("SELECT method, name FROM dlock_keys WHERE version = 1");
  EXPECT_EQ(number("SELECT COUNT(*) FROM dlock_keys WHERE name LIKE 'backup-%'"), 60);
}

// As by another client's sweep, at any moment.
TEST_P(MysqlUnusedKeys, AFreeLockIsNotBusyBecauseItsRowsAreDeleted) {
  std::atomic<bool> done = false;
  make_tables();
  std::thread sweeper([&] {
    while (!done) {
      server->ask(
          "DELETE gone FROM (SELECT method, name FROM dlock_keys LIMIT 8 FOR UPDATE "
          "SKIP LOCKED) AS unused STRAIGHT_JOIN dlock_keys AS gone USING (method, name)");
      std::this_thread::sleep_for(Millis{20});
    }
  });
  int busy = 0;
  for (int i = 0; i < 100; ++i) {
    auto lease = try_once(*a, request("job"));
    if (!lease) {
      ++busy;
    } else {
      EXPECT_TRUE(release(**lease));
    }
  }
  done = true;
  sweeper.join();
  EXPECT_EQ(busy, 0);
}

}  // namespace
}  // namespace dlock::test
