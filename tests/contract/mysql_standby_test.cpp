// A primary and a standby that copies from it: the pair that a URL with two hosts is for.
#include <gtest/gtest.h>

#include "client.hpp"
#include "fixtures.hpp"
#include "support/mysql_server.hpp"
#include "support/test_registry.hpp"

namespace dlock::test {
namespace {

class MysqlStandby : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (find_backend("mysql-table")->open == nullptr || !MysqlServer::available()) {
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
  std::unique_ptr<Backend> connect(Millis connect_timeout = Millis{5'000}) {
    return open_url("mysql-" + std::string(GetParam()) +
                        "://app:sesame@127.0.0.1:" + std::to_string(standby->port()) +
                        ",127.0.0.1:" + std::to_string(primary->port()) + "/test",
                    connect_timeout);
  }
  bool is_copied() {
    return eventually([&] {
      return standby->ask("SHOW TABLES LIKE 'dlock\\_locks'") != "" &&
             standby->ask("SELECT COUNT(*) FROM dlock_locks WHERE kind = 0") == "1";
    });
  }
  void promote() {
    primary->kill();
    standby->ask("STOP REPLICA");
    standby->ask("SET GLOBAL read_only = 0");
  }

  std::optional<MysqlServer> primary, standby;
};

TEST_P(MysqlStandby, TheOneThatCanBeWrittenIsTheOneThatIsAsked) {
  auto client = connect();
  auto lease = hold(*client, request("job"));
  ASSERT_TRUE(lease);
  EXPECT_EQ(primary->ask("SELECT COUNT(*) FROM dlock_locks WHERE kind = 0"), "1");
  EXPECT_TRUE(release(*lease));
}

TEST_P(MysqlStandby, ALeaseThatWasCopiedGoesOnAfterAFailover) {
  auto client = connect();
  auto lease = hold(*client, request("job"));
  ASSERT_TRUE(lease);
  const auto fence = lease->fence();
  ASSERT_TRUE(is_copied());
  promote();
  EXPECT_TRUE(renew(*lease));
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
  standby->ask("STOP REPLICA");
  standby->ask("SET GLOBAL read_only = 0");
  // As the keeper asks.
  EXPECT_FALSE(lease->renew(in(1'000), Cancel()));
  EXPECT_TRUE(eventually([&] { return lease->renew(in(5'000), Cancel()).has_value(); }));
  EXPECT_TRUE(release(*lease));
  waiting.cancel();
  primary->resume();
}

// As before maintenance: the old primary goes on to answer.
TEST_P(MysqlStandby, APlannedSwitchoverIsFollowedByTheHolderAndItsWaiter) {
  auto client = connect();
  auto lease = hold(*client, request("job"));
  ASSERT_TRUE(lease);
  Waiting waiting(connect(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  ASSERT_TRUE(eventually(
      [&] { return standby->ask("SELECT COUNT(*) FROM dlock_locks WHERE kind = 1") == "1"; }));
  primary->ask("SET GLOBAL read_only = 1");
  standby->ask("STOP REPLICA");
  standby->ask("SET GLOBAL read_only = 0");
  EXPECT_TRUE(renew(*lease));
  EXPECT_EQ(standby->ask("SELECT COUNT(*) FROM dlock_locks WHERE kind = 0"), "1");
  EXPECT_TRUE(release(*lease));
  lease = waiting.lease();
  EXPECT_TRUE(lease && release(*lease));
  EXPECT_TRUE(eventually([&] { return standby->ask("SELECT COUNT(*) FROM dlock_locks") == "0"; }));
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

INSTANTIATE_TEST_SUITE_P(, MysqlStandby, testing::Values("table", "version"),
                         [](const auto& method) { return std::string(method.param); });

}  // namespace
}  // namespace dlock::test
