// A primary and a standby that copies from it: the pair that a URL with two hosts is for.
#include <gtest/gtest.h>

#include "client.hpp"
#include "fixtures.hpp"
#include "support/mysql_server.hpp"
#include "support/proxy/proxy.hpp"
#include "support/test_registry.hpp"

namespace dlock::test {
namespace {

class MysqlStandby : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (find_backend("mysql")->open == nullptr || !MysqlServer::available()) {
      GTEST_SKIP() << "no MariaDB, or dlock was built without it";
    }
    MysqlOptions first{{"log-bin=binlog", "server-id=1"}};
    MysqlOptions second{{"server-id=2", "read_only=1"}};
    if (!MysqlServer::is_mariadb()) {
      for (MysqlOptions* options : {&first, &second}) {
        options->settings.emplace_back("gtid_mode=ON");
        options->settings.emplace_back("enforce_gtid_consistency=ON");
      }
    }
    primary.emplace(std::move(first));
    standby.emplace(std::move(second));
    primary->ask("GRANT REPLICATION SLAVE ON *.* TO app@'%'");
    // One who may write in spite of read_only.
    primary->ask("CREATE USER admin@'%' IDENTIFIED BY 'sesame'; GRANT ALL ON *.* TO admin@'%'");
    copy_from_primary();
  }
  void copy_from_primary() {
    const std::string port = std::to_string(primary->port());
    if (MysqlServer::is_mariadb()) {
      standby->ask("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = " + port +
                   ", MASTER_USER = 'app', MASTER_PASSWORD = 'sesame', MASTER_CONNECT_RETRY = 1, "
                   "MASTER_USE_GTID = slave_pos; START SLAVE");
    } else {
      standby->ask("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = " + port +
                   ", SOURCE_USER = 'app', SOURCE_PASSWORD = 'sesame', SOURCE_CONNECT_RETRY = 1, "
                   "SOURCE_AUTO_POSITION = 1, SOURCE_SSL = 1; START REPLICA");
    }
  }
  // The standby stands first.
  std::unique_ptr<Backend> connect(Millis connect_timeout = Millis{5'000},
                                   const std::string& user = "app") {
    return open_url("mysql-" + std::string(GetParam()) + "://" + user +
                        ":sesame@127.0.0.1:" + std::to_string(standby->port()) +
                        ",127.0.0.1:" + std::to_string(primary->port()) + "/test",
                    connect_timeout);
  }
  // The lock of a row stays behind on the other server.
  static bool is_row() { return std::string(GetParam()) == "row"; }
  static bool goes_on_or_has_lost_its_row(Lease& lease) {
    const auto renewed = lease.renew(in(5'000), Cancel());
    return is_row() ? !renewed && renewed.error().code == Errc::lost : renewed.has_value();
  }
  bool is_copied() {
    return eventually([&] {
      return standby->ask("SHOW TABLES LIKE 'dlock\\_locks'") != "" &&
             standby->ask("SELECT COUNT(*) FROM dlock_locks WHERE role = 'holder'") == "1";
    });
  }
  void promote() {
    primary->kill();
    let_standby_write();
  }
  void let_standby_write() {
    standby->ask("STOP REPLICA");
    standby->ask("SET GLOBAL read_only = 0");
  }
  // As before maintenance: the old primary goes on to answer.
  void switch_over() {
    primary->ask("SET GLOBAL read_only = 1");
    let_standby_write();
  }

  std::optional<MysqlServer> primary, standby;
};

TEST_P(MysqlStandby, TheOneThatCanBeWrittenIsTheOneThatIsAsked) {
  auto client = connect();
  auto lease = hold(*client, request("job"));
  ASSERT_TRUE(lease);
  EXPECT_EQ(primary->ask("SELECT COUNT(*) FROM dlock_locks WHERE role = 'holder'"), "1");
  EXPECT_TRUE(release(*lease));
}

TEST_P(MysqlStandby, ALeaseThatWasCopiedGoesOnAfterAFailover) {
  auto client = connect();
  auto lease = hold(*client, request("job"));
  ASSERT_TRUE(lease);
  const auto fence = lease->fence();
  ASSERT_TRUE(is_copied());
  promote();
  EXPECT_TRUE(goes_on_or_has_lost_its_row(*lease));
  auto other = connect();
  EXPECT_EQ(code_of(try_once(*other, request("job"))), Errc::busy);
  EXPECT_TRUE(release(*lease));
  auto next = hold(*other, request("job"));
  ASSERT_TRUE(next);
  EXPECT_GT(next->fence(), fence);
}

TEST_P(MysqlStandby, AHostThatIsSilentLeavesTimeForTheOthers) {
  standby->pause();
  auto client = connect(Millis{2'000});
  auto lease = hold(*client, request("job"));
  ASSERT_TRUE(lease);
  // From now on the primary is asked first.
  const auto took = time_of([&] { EXPECT_TRUE(is_free_for(*client, request("other"))); });
  EXPECT_LT(took, here(Millis{700}));
  EXPECT_TRUE(release(*lease));
}

TEST_P(MysqlStandby, APrimaryThatFallsSilentCostsNobodyALease) {
  auto client = connect();
  auto lease = hold(*client, request("job"));
  ASSERT_TRUE(lease);
  ASSERT_TRUE(is_copied());
  Waiting waiting(connect(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  primary->pause();
  let_standby_write();
  // As the keeper asks.
  EXPECT_FALSE(lease->renew(in(1'000), Cancel()));
  EXPECT_TRUE(eventually([&] { return goes_on_or_has_lost_its_row(*lease); }));
  EXPECT_TRUE(release(*lease));
  waiting.cancel();
  primary->resume();
}

TEST_P(MysqlStandby, APlannedSwitchoverIsFollowedByTheHolderAndItsWaiter) {
  auto client = connect();
  auto lease = hold(*client, request("job"));
  ASSERT_TRUE(lease);
  Waiting waiting(connect(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  ASSERT_TRUE(eventually([&] {
    return standby->ask("SELECT COUNT(*) FROM dlock_locks WHERE role = 'waiter'") == "1";
  }));
  switch_over();
  EXPECT_TRUE(goes_on_or_has_lost_its_row(*lease));
  EXPECT_EQ(standby->ask("SELECT COUNT(*) FROM dlock_locks WHERE role = 'holder'"), "1");
  EXPECT_TRUE(release(*lease));
  lease = waiting.lease();
  EXPECT_TRUE(lease && release(*lease));
  EXPECT_TRUE(eventually([&] { return standby->ask("SELECT COUNT(*) FROM dlock_locks") == "0"; }));
}

// Another program may have the row that is the same there: what is locked on the server where the
// name led to before keeps nobody out.
TEST_P(MysqlStandby, ANameThatLeadsToAnotherServerMovesTheLeaseAndNotTheRow) {
  Proxy name("127.0.0.1", primary->port());
  auto client = open_url("mysql-" + std::string(GetParam()) +
                             "://app:sesame@127.0.0.1:" + std::to_string(name.port()) + "/test",
                         Millis{5'000});
  auto lease = hold(*client, request("job"));
  ASSERT_TRUE(lease);
  ASSERT_TRUE(is_copied());
  EXPECT_TRUE(renew(*lease));
  switch_over();
  name.forward_to(standby->port());
  EXPECT_TRUE(eventually([&] { return goes_on_or_has_lost_its_row(*lease); }));
  EXPECT_EQ(standby->ask("SELECT COUNT(*) FROM dlock_locks WHERE role = 'holder'"), "1");
  EXPECT_TRUE(release(*lease));
  EXPECT_EQ(standby->ask("SELECT COUNT(*) FROM dlock_locks WHERE role = 'holder'"), "0");
}

// Not even for who may write there: its lease is not to be renewed beside one that the next
// primary grants.
TEST_P(MysqlStandby, AServerThatIsReadOnlyKeepsAndGrantsNoLease) {
  auto client = connect(Millis{1'000}, "admin");
  auto lease = hold(*client, request("job"));
  ASSERT_TRUE(lease);
  Waiting waiting(connect(Millis{5'000}, "admin"), request("job"));
  ASSERT_TRUE(waiting.blocked());
  primary->ask("SET GLOBAL read_only = 1");
  const Deadline until = lease->valid_until();
  EXPECT_EQ(code_of(lease->renew(in(1'000), Cancel())), Errc::unreachable);
  EXPECT_EQ(lease->valid_until(), until);
  EXPECT_EQ(code_of(lease->complete({"", Millis{60'000}}, in(1'000), Cancel())), Errc::unreachable);
  EXPECT_EQ(code_of(try_once(*client, request("other"))), Errc::unreachable);
  EXPECT_EQ(primary->ask("SELECT COUNT(*) FROM dlock_locks WHERE role = 'holder'"), "1");
  primary->ask("SET GLOBAL read_only = 0");
  EXPECT_TRUE(eventually([&] { return goes_on_or_has_lost_its_row(*lease); }));  // by complete()
  EXPECT_TRUE(release(*lease));
  lease = waiting.lease();
  EXPECT_TRUE(lease && release(*lease));
}

// The server that this client asked before goes on to answer, and knows nothing of the job.
TEST_P(MysqlStandby, WhatIsDoneIsLookedUpWhereTheLockIs) {
  auto client = connect();
  ASSERT_TRUE(client->prepare_marks("job", soon()));
  EXPECT_FALSE(find(*client));
  ASSERT_TRUE(eventually([&] { return standby->ask("SHOW TABLES LIKE 'dlock\\_records'") != ""; }));
  switch_over();
  auto other = connect();
  auto first = hold(*other, request("job"));
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->complete({"", Millis{60'000}}, soon(), Cancel()));
  auto second = hold(*client, request("job"));
  ASSERT_TRUE(second);
  const auto done = second->find_mark(*client, {"job", ""}, soon());
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(done.value());
  EXPECT_TRUE(release(*second));
}

// The price of a copy that comes later: nothing there knows of the lock.  What must hold is that
// its holder learns of it.
TEST_P(MysqlStandby, ALeaseThatWasNotCopiedIsLostAfterAFailover) {
  auto client = connect();
  {
    auto first = hold(*client, request("job"));
    ASSERT_TRUE(first);
    ASSERT_TRUE(is_copied());
    standby->ask("STOP REPLICA IO_THREAD");
    EXPECT_TRUE(release(*first));
  }
  auto lease = hold(*client, request("job"));
  ASSERT_TRUE(lease);
  promote();
  const auto renewed = renew(*lease);
  ASSERT_FALSE(renewed);
  EXPECT_EQ(renewed.error().code, Errc::lost) << renewed.error().message;
}

INSTANTIATE_TEST_SUITE_P(, MysqlStandby, testing::Values("table", "row", "version"),
                         [](const auto& method) { return std::string(method.param); });

}  // namespace
}  // namespace dlock::test
