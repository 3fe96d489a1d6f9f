// Schedules of a database, one text at a time: those on which a simpler design lets two hold a
// lock.
#include <gtest/gtest.h>

#include "backends/sql/lock_rows.hpp"
#include "backends/sql/statements.hpp"
#include "client.hpp"
#include "fixtures.hpp"

namespace dlock::test {
namespace {

class SqlSteps : public testing::TestWithParam<ServiceKind> {
 protected:
  std::unique_ptr<sql::Session> session() const {
    auto opened = database->open(soon(), Cancel());
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  /// A client that looks, with the gate.
  sql::Look look(sql::Session& session, const Request& own) const {
    const auto seen = session.ask(say.look(own.owner.id, Millis{0}), soon(), Cancel());
    EXPECT_TRUE(seen.ok()) << seen.error->message;
    return sql::look_of(seen.answers);
  }
  bool takes(sql::Session& session, const Request& own, const sql::Look& seen,
             bool has_gate) const {
    const auto decision = sql::decide(seen, own.claim(), own.owner.id);
    EXPECT_EQ(decision.kind, Turn::Kind::granted);
    const auto took = session.ask(say.take(own, seen, decision, has_gate), soon(), Cancel());
    EXPECT_TRUE(took.ok()) << took.error->message;
    return sql::taken(took).is_won;
  }
  /// The roles of all rows.
  std::string roles() const {
    const auto reply =
        session()->ask(database->fill("SELECT role FROM {locks}", {}), soon(), Cancel());
    std::string out;
    for (const sql::Row& row : reply.answers.at(0).rows) out += sql::text(row, 0) + ' ';
    return out;
  }

  const std::unique_ptr<Service> service = GetParam().start();
  const std::shared_ptr<const sql::Database> database = service->database();
  const sql::Statements say{*database, "job"};
  const std::unique_ptr<Backend> a = service->connect();
};

// On the version alone this one is granted: a renewal does not raise it.
TEST_P(SqlSteps, ALeaseThatIsRenewedAfterItWasSeenToEndIsNotTakenOver) {
  auto lease = hold(*a, request("job", Mode::exclusive, 1, Millis{1'000}));
  service->provoke(Fault::sessions_ended);
  const Request other = request("job");
  const auto its = session();
  sql::Look seen;
  ASSERT_TRUE(eventually([&] {
    seen = look(*its, other);
    return seen.rows.size() == 1 && !seen.rows.front().is_alive();
  }));
  // A clock that was set back: the holder renews in time.
  const auto back = session()->ask(
      database->fill("UPDATE {locks} SET expires_at = {expiry}", {{"ttl", "1000000"}}), soon(),
      Cancel());
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(renew(*lease));
  EXPECT_FALSE(takes(*its, other, seen, true));
  EXPECT_TRUE(renew(*lease));
  EXPECT_EQ(roles(), "holder ");
  EXPECT_TRUE(release(*lease));
}

// A waiter that was seen to be dead has connected again, and was granted the lock.
TEST_P(SqlSteps, ARowThatHasBecomeAHoldersIsNotSwept) {
  auto lease = hold(*a, request("job"));
  const std::vector<std::string> owners{lease->owner_id()};
  ASSERT_TRUE(session()->ask(say.sweep_rows(owners), soon(), Cancel()).ok());
  EXPECT_EQ(roles(), "holder ");
  EXPECT_TRUE(renew(*lease));
  EXPECT_TRUE(release(*lease));
}

// It was found while its client was connecting again.
TEST_P(SqlSteps, AWaiterThatIsThereIsNotSwept) {
  auto lease = hold(*a, request("job"));
  const Request waiter = request("job");
  const std::vector<std::string> owners{waiter.owner.id};
  const auto its = session();
  look(*its, waiter);
  ASSERT_TRUE(its->ask(say.join(waiter), soon(), Cancel()).ok());
  ASSERT_TRUE(session()->ask(say.sweep_rows(owners), soon(), Cancel()).ok());
  EXPECT_EQ(roles().size(), std::string("holder waiter ").size());
  its->close();
  EXPECT_TRUE(eventually([&] {
    EXPECT_TRUE(session()->ask(say.sweep_rows(owners), soon(), Cancel()).ok());
    return roles() == "holder ";
  }));
  EXPECT_TRUE(release(*lease));
}

TEST_P(SqlSteps, OfTwoThatHaveSeenAFreeLockOneTakesIt) {
  EXPECT_TRUE(is_free_for(*a, request("job")));
  const std::array both{request("job"), request("job")};
  std::array<std::unique_ptr<sql::Session>, 2> sessions;
  std::array<sql::Look, 2> looks;
  for (std::size_t i = 0; i < 2; ++i) {
    sessions.at(i) = session();
    looks.at(i) = look(*sessions.at(i), both.at(i));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(takes(*sessions.at(i), both.at(i), looks.at(i), i == 0), i == 0);
  }
  EXPECT_EQ(roles(), "holder ");
}

// It does not know that it has the row, and cannot say that its job runs.
using SqlRowSteps = SqlSteps;
TEST_P(SqlRowSteps, TheRowOfAClientThatIsStoppedIsFreeAfterTenSeconds) {
  const auto its = session();
  const auto stopped = session();
  EXPECT_TRUE(release(*hold(*a, request("job"))));
  const Request wanted = request("job", Mode::exclusive, 1, Millis{3'600'000});
  ASSERT_TRUE(stopped->ask(say.lock_row(wanted, false), soon(), Cancel()).ok());
  const auto gets_it = [&] {
    return its->ask(say.lock_row(request("job"), true), soon(), Cancel()).ok();
  };
  EXPECT_FALSE(gets_it());
  EXPECT_TRUE(eventually(gets_it));
}
INSTANTIATE_TEST_SUITE_P(, SqlRowSteps, testing::ValuesIn(sql_kinds("_row")),
                         [](const auto& it) { return it.param.name; });

INSTANTIATE_TEST_SUITE_P(, SqlSteps, testing::ValuesIn(sql_kinds("_table")),
                         [](const auto& it) { return it.param.name; });

}  // namespace
}  // namespace dlock::test
