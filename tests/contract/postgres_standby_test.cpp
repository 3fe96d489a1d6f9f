// A synchronous standby that is gone.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "client.hpp"
#include "fixtures.hpp"
#include "support/postgres_server.hpp"
#include "support/test_registry.hpp"

namespace dlock::test {
namespace {

// The server says so in a warning, when the wait for the standby is cancelled: the commit is there,
// and the standby that takes over does not have it.
TEST(PostgresStandby, ACommitThatIsNotAcknowledgedIsNoAnswer) {
  if (find_backend("postgres")->open == nullptr) GTEST_SKIP() << "built without postgres";
  if (!PostgresServer::available()) GTEST_SKIP() << "postgresql is not installed";
  const PostgresServer server;
  const auto client = open_url(server.url("table"));
  const auto lease = hold(*client, request("renewed"));
  const auto done = begin(*client, "done");
  ASSERT_TRUE(lease && done);
  server.ask("ALTER SYSTEM SET synchronous_standby_names = 'none'");
  server.ask("SELECT pg_reload_conf()");
  std::atomic<bool> stop = false;
  std::thread administrator([&] {
    while (!stop) {
      server.ask(
          "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    }
  });
  Deadline valid_until{};
  Error error{Errc::busy, ""};
  EXPECT_TRUE(eventually([&] {
    valid_until = lease->valid_until();
    const auto renewed = renew(*lease);
    if (!renewed) error = renewed.error();
    return !renewed;
  }));
  EXPECT_EQ(error.code, Errc::unreachable);
  EXPECT_NE(error.message.find("standby has not acknowledged"), std::string::npos) << error.message;
  EXPECT_EQ(lease->valid_until(), valid_until);
  EXPECT_EQ(code_of(try_once(*client, request("acquired"))), Errc::unreachable);
  // Nor if it is said again, when there is nothing left to be done.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(code_of(done->complete({"", Millis{60'000}}, soon(), Cancel())), Errc::unreachable);
  }
  stop = true;
  administrator.join();
  server.ask("ALTER SYSTEM RESET synchronous_standby_names");
  server.ask("SELECT pg_reload_conf()");
  EXPECT_TRUE(eventually([&] { return renew(*lease).has_value(); }));
  EXPECT_TRUE(done->complete({"", Millis{60'000}}, soon(), Cancel()));
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(eventually([&] { return is_free_for(*client, request("acquired")); }));
}

}  // namespace
}  // namespace dlock::test
