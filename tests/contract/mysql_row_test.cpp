// What mysql-row has besides the lease of mysql: a row that other programs can lock, too.
#include <gtest/gtest.h>

#include "mysql_fixture.hpp"

namespace dlock::test {
namespace {

class MysqlRow : public MysqlTest {
 protected:
  // Another program: a session of its own that locks the row of "job", or says so when it may not.
  std::unique_ptr<mysql::Connection> session() const { return session_at(place()); }
  static bool can_lock(mysql::Connection& session, const std::string& how = "FOR UPDATE") {
    const auto reply = session.ask(
        "SET SESSION innodb_lock_wait_timeout = 1; START TRANSACTION; SELECT name FROM dlock_rows "
        "WHERE name = 'job' " +
            how,
        soon(), Cancel());
    return reply.ok() && reply.answers.back().rows.size() == 1;
  }
  static void let_go(mysql::Connection& session) {
    EXPECT_TRUE(session.ask("ROLLBACK", soon(), Cancel()).ok());
  }
  std::string row_session() const {
    return server->ask(
        "SELECT IS_USED_LOCK(CONCAT('dlock.row.', owner)) FROM dlock_locks WHERE role = 'holder'");
  }
};

INSTANTIATE_TEST_SUITE_P(, MysqlRow, testing::Values("row"), mysql_name);

TEST_P(MysqlRow, AHolderKeepsOutWhoLocksTheRow) {
  const auto other = session();
  for (const Mode mode : {Mode::exclusive, Mode::shared, Mode::slots}) {
    SCOPED_TRACE(mode_name(mode));
    auto lease = hold(*a, request("job", mode, 2));
    EXPECT_FALSE(can_lock(*other));
    let_go(*other);
    EXPECT_EQ(can_lock(*other, "LOCK IN SHARE MODE"), mode != Mode::exclusive);
    let_go(*other);
    EXPECT_TRUE(renew(*lease));
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(can_lock(*other));
    let_go(*other);
  }
  EXPECT_TRUE(rows_become(0));
}

// For longer than its lease lasts without a renewal.
TEST_P(MysqlRow, WhoLocksTheRowIsWaitedForAndNamed) {
  EXPECT_TRUE(release(*hold(*a, request("job"))));
  const auto other = session();
  ASSERT_TRUE(can_lock(*other));
  const Error error = error_of(try_once(*a, request("job")));
  EXPECT_EQ(error.code, Errc::busy);
  EXPECT_TRUE(says(error, "another program has locked its row in dlock_rows")) << error.message;
  EXPECT_TRUE(rows_become(0));
  Waiting waiting(client(), request("job", Mode::exclusive, 1, Millis{2'000}));
  ASSERT_TRUE(waiting.blocked());
  EXPECT_FALSE(waiting.done(4'000));
  EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
  let_go(*other);
  auto lease = waiting.lease();
  ASSERT_TRUE(lease);
  EXPECT_GT(lease->valid_until(), Clock::now());
  EXPECT_TRUE(renew(*lease));
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(rows_become(0));
}

// One that reads the row before there is one keeps it from being made.
TEST_P(MysqlRow, WhoLocksTheGapWhereTheRowWillBeIsWaitedForAndNamed) {
  EXPECT_TRUE(release(*hold(*a, request("other"))));
  const auto other = session();
  ASSERT_TRUE(other
                  ->ask("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; START "
                        "TRANSACTION; SELECT name FROM dlock_rows WHERE name = 'job' FOR UPDATE",
                        soon(), Cancel())
                  .ok());
  EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
  Waiting waiting(client(), request("job", Mode::exclusive, 1, Millis{2'000}));
  ASSERT_TRUE(waiting.blocked());
  EXPECT_FALSE(waiting.done(4'000));
  let_go(*other);
  auto lease = waiting.lease();
  EXPECT_TRUE(lease && release(*lease));
}

// Its request would stand in the way of those that can have the row.
TEST_P(MysqlRow, WhoGivesUpKeepsNobodyWaiting) {
  EXPECT_TRUE(release(*hold(*a, request("job"))));
  const auto other = session();
  ASSERT_TRUE(can_lock(*other, "LOCK IN SHARE MODE"));
  Waiting waiting(client(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  waiting.cancel();
  EXPECT_EQ(code_of(waiting.result()), Errc::cancelled);
  EXPECT_TRUE(is_free_for(*b, request("job", Mode::shared)));
}

TEST_P(MysqlRow, WhoGivesUpLeavesNothing) {
  EXPECT_TRUE(release(*hold(*a, request("job"))));
  const auto other = session();
  ASSERT_TRUE(can_lock(*other));
  for (const bool cancelled : {true, false}) {
    Waiting waiting(client(), request("job"), cancelled ? kNever : in(2'000));
    ASSERT_TRUE(waiting.blocked());
    if (cancelled) waiting.cancel();
    EXPECT_EQ(code_of(waiting.result()), cancelled ? Errc::cancelled : Errc::busy);
    EXPECT_TRUE(rows_become(0));
  }
  let_go(*other);
  EXPECT_TRUE(eventually([&] { return is_free_for(*b, request("job")); }));
}

TEST_P(MysqlRow, TheEndOfTheRowLockIsALoss) {
  auto lease = hold(*a, request("job"));
  const int events = listen_to(*lease);
  EXPECT_TRUE(renew(*lease));
  EXPECT_FALSE(util::wait_readable(events, Deadline{}));
  kill_session(row_session());
  EXPECT_TRUE(util::wait_readable(events, soon()));
  const Error error = error_of(renew(*lease));
  EXPECT_EQ(error.code, Errc::lost);
  EXPECT_TRUE(says(error, "other programs out")) << error.message;
  (void)release(*lease);
  EXPECT_TRUE(rows_become(0));
  EXPECT_TRUE(is_free_for(*b, request("job")));
}

// That of the lease goes on over another connection.
TEST_P(MysqlRow, TheLeaseOutlivesItsOwnConnection) {
  auto lease = hold(*a, request("job"));
  kill_session(session_of("role = 'holder'"));
  EXPECT_TRUE(eventually([&] { return renew(*lease).has_value(); }));
  EXPECT_FALSE(can_lock(*session()));
  EXPECT_TRUE(release(*lease));
}

// The server would not notice for long that the client has gone.
TEST_P(MysqlRow, WhoIsCutOffHasTheRowForATtlAtMost) {
  const Millis ttl{2'000};
  auto lease = hold(*through_proxy(), request("job", Mode::exclusive, 1, ttl));
  EXPECT_TRUE(renew(*lease));
  proxy->blackhole();
  const auto other = session();
  EXPECT_LT(time_of([&] { EXPECT_TRUE(eventually([&] { return can_lock(*other); })); }),
            ttl + here(Millis{4'000}));
  EXPECT_GE(Clock::now(), lease->valid_until());
}

TEST_P(MysqlRow, AForceReleaseFreesTheRowToo) {
  auto lease = hold(*a, request("job"));
  const auto broken = b->force_release("job", lease->owner_id(), {"a test"}, soon());
  EXPECT_TRUE(broken && broken.value());
  const auto other = session();
  EXPECT_TRUE(eventually([&] { return can_lock(*other); }));
  let_go(*other);
  EXPECT_EQ(code_of(renew(*lease)), Errc::lost);
}

}  // namespace
}  // namespace dlock::test
