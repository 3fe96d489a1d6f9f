// A Galera cluster of two, both of which take changes.  The clock of the second one is 40 s ahead.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <thread>

#include "backends/sql/heartbeats.hpp"
#include "client.hpp"
#include "mysql_fixture.hpp"
#include "support/galera_cluster.hpp"

namespace dlock::test {
namespace {

class MysqlGalera : public testing::Test {
 protected:
  void SetUp() override {
    if (find_backend("mysql")->open == nullptr) GTEST_SKIP() << "built without mysql";
    if (!MysqlServer::is_mariadb()) GTEST_SKIP() << "MySQL has no Galera";
    if (!GaleraCluster::available()) GTEST_SKIP() << "galera-4 or rsync is not installed";
    static const GaleraCluster ahead(Millis{40'000});
    cluster = &ahead;
    EXPECT_TRUE(is_free_for(*client(0), request("job")));
    for (int i = 0; i < 2; ++i) cluster->server(i).ask("TRUNCATE mysql.general_log");
  }
  void TearDown() override {
    if (cluster == nullptr) return;
    EXPECT_TRUE(eventually([&] { return rows(0) == 0 && rows(1) == 0; }));
  }
  std::unique_ptr<Backend> client(int number, Millis patience = Millis{5'000}) const {
    return connect_mysql(cluster->server(number).url("version"), {.patience = patience});
  }
  long rows(int number) const {
    return std::stol(cluster->server(number).ask("SELECT COUNT(*) FROM dlock_locks"));
  }
  bool waiters_are(std::size_t count) const {
    const auto looks = client(1);
    return eventually([&] { return inspect(*looks, "job").waiters->size() == count; });
  }
  /// A waiter of the second server that does not beat.
  void add_gone_waiter(int lease_s) const {
    cluster->server(1).ask(
        "INSERT INTO dlock_locks (method, name, role, slot, owner, mode, slots, fence, "
        "since, expires_at, record) VALUES (3, 'job', 'waiter', 0, 'gone', 'exclusive', 1, 0, "
        "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + "
        "INTERVAL " +
        std::to_string(lease_s) + " SECOND, '')");
  }
  void remove_gone_waiter() const {
    cluster->server(1).ask("DELETE FROM dlock_locks WHERE owner = 'gone'");
  }
  static Request brief() { return request("job", Mode::exclusive, 1, Millis{2'000}); }

  const GaleraCluster* cluster = nullptr;
};

// By the clock of the second server it has expired long ago.
TEST_F(MysqlGalera, ALeaseThatIsRenewedIsKeptWhateverTheClocksSay) {
  for (const int holder : {0, 1}) {
    const auto a = client(holder), b = client(1 - holder);
    auto lease = hold(*a, brief());
    ASSERT_TRUE(lease);
    EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
    EXPECT_EQ(inspect(*b, "job").holders.size(), 1u);
    Waiting waiting(client(1 - holder), request("job"));
    EXPECT_TRUE(waiting.blocked());
    for (const Deadline end = in(3'000); Clock::now() < end;) {
      EXPECT_TRUE(renew(*lease));
      ASSERT_FALSE(waiting.done(300)) << "an OVERLAP";
    }
    const auto fence = lease->fence();
    EXPECT_TRUE(release(*lease));
    lease = waiting.lease();
    ASSERT_TRUE(lease);
    EXPECT_GT(lease->fence(), fence);
    EXPECT_TRUE(release(*lease));
  }
}

TEST_F(MysqlGalera, ADeadHolderIsOutlivedOnBothServers) {
  for (const int holder : {0, 1}) {
    const auto before = Clock::now();
    hold(*client(holder), brief()).reset();
    Waiting waiting(client(1 - holder), request("job"));
    auto lease = waiting.lease();
    ASSERT_TRUE(lease);
    EXPECT_GE(Clock::now() - before, Millis{2'000});
    EXPECT_TRUE(release(*lease));
  }
}

// In the order that the clocks of their servers tell.
TEST_F(MysqlGalera, WaitersOfBothServersAreLetInOneByOne) {
  auto lease = hold(*client(0), request("job"));
  std::list<Waiting> line;
  for (std::size_t i = 0; i < 6; ++i) {
    line.emplace_back(client(i % 2), request("job"));
    ASSERT_TRUE(line.back().blocked());
    ASSERT_TRUE(waiters_are(line.size()));
  }
  while (!line.empty()) {
    EXPECT_TRUE(release(*lease));
    const auto next = [&] {
      return std::find_if(line.begin(), line.end(), [](Waiting& it) { return it.done(1); });
    };
    ASSERT_TRUE(eventually([&] { return next() != line.end(); }));
    const auto first = next();
    lease = first->lease();
    ASSERT_TRUE(lease);
    line.erase(first);
    for (Waiting& waiting : line) EXPECT_FALSE(waiting.done(0)) << "an OVERLAP";
  }
  EXPECT_TRUE(release(*lease));
}

TEST_F(MysqlGalera, AWaiterThatIsGoneHoldsNobodyUp) {
  auto lease = hold(*client(0), request("job"));
  add_gone_waiter(20);
  Waiting waiting(client(0), request("job"));
  ASSERT_TRUE(waiters_are(2));
  EXPECT_TRUE(release(*lease));
  lease = waiting.lease();
  EXPECT_TRUE(lease && release(*lease));
  remove_gone_waiter();
}

// As on a machine or a network that is busy.
TEST_F(MysqlGalera, AWaiterThatIsSlowKeepsItsPlace) {
  Proxy proxy("127.0.0.1", cluster->server(0).port());
  auto lease = hold(*client(0), request("job"));
  Waiting first(connect_mysql("mysql-version://app:sesame@127.0.0.1:" +
                              std::to_string(proxy.port()) + "/test"),
                request("job"));
  ASSERT_TRUE(waiters_are(1));
  Waiting second(client(1), request("job"));
  ASSERT_TRUE(waiters_are(2));
  proxy.delay_requests(Millis{3'000});
  EXPECT_TRUE(release(*lease));
  lease = first.lease();
  proxy.pass();
  ASSERT_TRUE(lease);
  EXPECT_FALSE(second.done(0)) << "an OVERLAP";
  EXPECT_TRUE(release(*lease));
  lease = second.lease();
  EXPECT_TRUE(lease && release(*lease));
}

// One that comes too late to watch it, too, and on both servers.
TEST_F(MysqlGalera, AHoldThatIsOverIsOverForWhoeverDoesNotWait) {
  for (const int holder : {0, 1}) {
    const auto a = client(holder);
    auto lease = hold(*a, request("job"));
    EXPECT_TRUE(lease->end_command(in(1'000), soon(), Cancel()));
    lease.reset();
    EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
    EXPECT_TRUE(eventually([&] { return static_cast<bool>(try_once(*a, request("job"))); }));
    cluster->server(0).ask("DELETE FROM dlock_locks");
  }
}

TEST_F(MysqlGalera, AWaiterThatIsGoneDoesNotMakeAFreeLockBusy) {
  add_gone_waiter(1);
  const auto a = client(1);
  EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
  EXPECT_TRUE(eventually([&] { return is_free_for(*a, request("job")); }));
  remove_gone_waiter();
}

// As if a text of a connection that was given up was carried out late.
TEST_F(MysqlGalera, WhatIsCarriedOutLateIsRemoved) {
  Request late = request("job");
  hold(*client(0), late).reset();
  Waiting waiting(client(1), late);
  auto lease = waiting.lease();
  EXPECT_TRUE(lease && release(*lease));
}

TEST_F(MysqlGalera, AWaiterThatBeatsStaysInTheQueue) {
  auto lease = hold(*client(0), request("job"));
  Waiting first(client(0), request("job"));
  ASSERT_TRUE(waiters_are(1));
  Waiting second(client(1), request("job"));
  ASSERT_TRUE(waiters_are(2));
  const std::string ids = cluster->server(0).ask("SELECT owner FROM dlock_locks ORDER BY owner");
  std::this_thread::sleep_for(sql::kWaiterLease + sql::kWaiterBeat);
  EXPECT_EQ(cluster->server(0).ask("SELECT owner FROM dlock_locks ORDER BY owner"), ids);
  EXPECT_TRUE(release(*lease));
  lease = first.lease();
  EXPECT_TRUE(lease && release(*lease));
  lease = second.lease();
  EXPECT_TRUE(lease && release(*lease));
}

TEST_F(MysqlGalera, AHolderGoesOnOverTheOtherServer) {
  Proxy proxy("127.0.0.1", cluster->server(0).port());
  const auto its =
      connect_mysql("mysql-version://app:sesame@127.0.0.1:" + std::to_string(proxy.port()) +
                    ",127.0.0.1:" + std::to_string(cluster->server(1).port()) + "/test");
  auto lease = hold(*its, request("job"));
  proxy.refuse();
  proxy.cut();
  EXPECT_TRUE(renew(*lease));
  EXPECT_EQ(code_of(try_once(*client(0), request("job"))), Errc::busy);
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(is_free_for(*client(0), request("job")));
}

TEST_F(MysqlGalera, AnOperatorOfTheOtherServerBreaksALock) {
  const auto a = client(0), b = client(1);
  auto lease = hold(*a, request("job"));
  const auto broken = b->force_release("job", lease->owner_id(), {"a test"}, soon());
  EXPECT_TRUE(broken && broken.value());
  EXPECT_EQ(code_of(renew(*lease)), Errc::lost);
  EXPECT_TRUE(is_free_for(*b, request("job")));
}

// Percona's cluster refuses them.
TEST_F(MysqlGalera, NobodySaysGetLock) {
  for (int i = 0; i < 2; ++i) {
    cluster->server(i).ask("SET GLOBAL log_output = 'TABLE'; SET GLOBAL general_log = ON");
  }
  auto lease = hold(*client(0), slots("job", 2));
  auto other = hold(*client(1), slots("job", 2));
  Waiting waiting(client(1), slots("job", 2));
  EXPECT_TRUE(waiting.blocked());
  EXPECT_TRUE(renew(*lease));
  EXPECT_TRUE(release(*lease));
  lease = waiting.lease();
  EXPECT_TRUE(lease && release(*lease));
  EXPECT_TRUE(release(*other));
  for (int i = 0; i < 2; ++i) {
    cluster->server(i).ask("SET GLOBAL general_log = OFF");
    EXPECT_EQ(cluster->server(i).ask("SELECT argument FROM mysql.general_log WHERE argument RLIKE "
                                     "'(GET|USED|RELEASE)_LOCK' AND user_host LIKE 'app%'"),
              "");
    EXPECT_NE(cluster->server(i).ask("SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE "
                                     "'%dlock_locks%' AND user_host LIKE 'app%'"),
              "0");
  }
}

// A waiter goes by the ttl of the last renewal, not by that of the acquire.
TEST_F(MysqlGalera, ALeaseThatWasLetGoIsRenewedAndReleasedOverTheOtherServer) {
  for (const int holder : {0, 1}) {
    const Request wanted = brief();
    hold(*client(holder), wanted).reset();
    const auto other = client(1 - holder);
    const auto lease_for = [&](Millis ttl) -> std::unique_ptr<Lease> {
      const LockInfo lock = inspect(*other, "job");
      if (lock.holders.size() != 1 || lock.holders[0].owner.id != wanted.owner.id) return nullptr;
      auto lease = other->resume(lock, lock.holders[0], ttl, soon());
      return lease ? std::move(*lease) : nullptr;
    };
    Waiting waiting(client(holder), request("job"));
    EXPECT_TRUE(waiting.blocked());
    auto lease = lease_for(Millis{60'000});
    ASSERT_TRUE(lease && renew(*lease));
    EXPECT_FALSE(waiting.done(4'000)) << "an OVERLAP";
    lease = lease_for(Millis{2'000});
    const Deadline renewed = Clock::now();
    ASSERT_TRUE(lease && renew(*lease));
    auto next = waiting.lease();
    ASSERT_TRUE(next);
    EXPECT_GE(Clock::now() - renewed, Millis{2'000});
    EXPECT_EQ(code_of(renew(*lease)), Errc::lost);
    EXPECT_TRUE(release(*next));
  }
}

// Two changes of the same row, of which the cluster refuses one.
TEST_F(MysqlGalera, ClientsOfBothServersExcludeEachOther) {
  std::atomic<int> inside{0}, grants{0};
  std::atomic<std::uint64_t> last{0};
  std::list<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      const auto its = client(i % 2);
      for (int k = 0; k < 4; ++k) {
        auto lease = hold(*its, request("job"));
        if (!lease) return;
        EXPECT_EQ(inside.fetch_add(1), 0) << "an OVERLAP";
        EXPECT_GT(lease->fence().value_or(0), last.exchange(lease->fence().value_or(0)));
        ++grants;
        inside.fetch_sub(1);
        EXPECT_TRUE(release(*lease));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(grants, 24);
}

TEST_F(MysqlGalera, ClientsOfBothServersNeverHaveTheSameNumber) {
  constexpr unsigned kSlots = 2;
  std::array<std::atomic<int>, kSlots + 1> holders{};  // of each number
  std::atomic<int> grants{0};
  std::list<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      const auto its = client(i % 2);
      for (int k = 0; k < 4; ++k) {
        auto lease = hold(*its, slots("job", kSlots));
        if (!lease) return;
        const unsigned slot = lease->slot().value_or(0);
        ASSERT_TRUE(slot >= 1 && slot <= kSlots) << slot;
        EXPECT_EQ(++holders.at(slot), 1) << "an OVERLAP of number " << slot;
        ++grants;
        --holders.at(slot);
        EXPECT_TRUE(release(*lease));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(grants, 24);
}

}  // namespace
}  // namespace dlock::test
