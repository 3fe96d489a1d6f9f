// What `dlock once` remembers in MySQL, whatever becomes of a connection, a reply or a table.
#include <gtest/gtest.h>

#include <atomic>
#include <list>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "backends/mysql/mysql_backend.hpp"
#include "backends/sql/statements.hpp"
#include "mysql_fixture.hpp"
#include "support/fake_clock.hpp"
#include "support/galera_cluster.hpp"

namespace dlock::test {
namespace {

/// What both fixtures do.
struct MysqlOnceSteps {
  static constexpr Millis kDay{24 * 3'600'000};

  static Result<void> complete(Lease& lease, Deadline deadline = soon(),
                               const std::string& period = "") {
    return lease.complete({period, kDay}, deadline, Cancel());
  }
  static bool is_done_by(const Lease& lease, Backend& backend) {
    const auto mark = find(backend);
    return mark && mark->owner.id == lease.owner_id();
  }
};

class MysqlOnce : public MysqlTest, protected MysqlOnceSteps {
 protected:
  void do_job(const std::string& key = "job", const std::string& period = "") {
    EXPECT_TRUE(complete(*begin(*a, request(key)), soon(), period));
  }
  long marks(const std::string& condition = "TRUE") const {
    return number("SELECT COUNT(*) FROM dlock_records WHERE " + condition);
  }
  void expect_free() {
    EXPECT_TRUE(rows_become(0));
    EXPECT_TRUE(is_free_for(*b, request("job")));
  }
  /// A session that has the mark of "job" locked, until it is closed.
  std::unique_ptr<mysql::Connection> keep_mark() const {
    auto session = session_at(place());
    EXPECT_TRUE(
        session
            ->ask("START TRANSACTION; SELECT * FROM dlock_records WHERE name = 'job' FOR UPDATE",
                  soon(), Cancel())
            .ok());
    return session;
  }
  /// A user who may do that, and no more.
  std::unique_ptr<Backend> user(const std::string& rights) {
    server->ask("DROP USER IF EXISTS poor@'%'; CREATE USER poor@'%'");
    grant(rights);
    return client_of("poor");
  }
  /// Of a mark that is remembered for so many days.
  static std::string record(int days) {
    return "'{\"dlock\":\"1\",\"id\":\"x\",\"remember_ms\":" + std::to_string(days * kDay.count()) +
           "}'";
  }
  void grant(const std::string& rights) { server->ask("GRANT " + rights + " TO poor@'%'"); }
};

INSTANTIATE_TEST_SUITE_P(Methods, MysqlOnce, testing::Values("table", "version"), mysql_name);

// --- replies and connections that are lost

TEST_P(MysqlOnce, WhatIsDoneIsDoneAlthoughTheReplyIsLost) {
  const auto client_of_it = readable_through_proxy();
  auto lease = begin(*client_of_it);
  Waiting waiting(client(), request("job"));
  ASSERT_TRUE(waiters_are(1));
  proxy->lose_reply_to("REPLACE");
  const auto done = complete(*lease);
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_EQ(proxy->lost_replies(), 1);
  const auto next = waiting.lease();
  ASSERT_TRUE(next);
  EXPECT_TRUE(is_done_by(*lease, *b));
  EXPECT_TRUE(renew(*next));
  EXPECT_TRUE(release(*next));
  expect_free();
}

// Nor is any other reply that is lost.
TEST_P(MysqlOnce, ItIsRememberedOrLostWhicheverRepliesAreLost) {
  for (long skip = 0, all = 1; all > 0; ++skip) {
    SCOPED_TRACE(skip);
    const auto its = readable_through_proxy();
    auto lease = begin(*its);
    const long before = proxy->lost_replies();
    proxy->lose_reply_to("", 2, skip);
    Result<void> done;
    do {
      done = complete(*lease);
    } while (!done && done.error().code == Errc::unreachable);
    all = proxy->lost_replies() - before;
    proxy->pass();
    if (done) {
      EXPECT_TRUE(is_done_by(*lease, *b));
      EXPECT_EQ(rows(), 0);
    } else {
      EXPECT_EQ(done.error().code, Errc::lost) << done.error().message;
      EXPECT_FALSE(is_done_by(*lease, *b));
      (void)release(*lease);
    }
    lease.reset();
    expect_free();
    ASSERT_LT(skip, 50);
  }
}

// When the command has ended, and before that can be remembered.
TEST_P(MysqlOnce, AConnectionThatIsKilledBeforeEndsNothing) {
  auto lease = begin(*a);
  kill_session(session_of("role = 'holder'"));
  const auto done = complete(*lease);
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_TRUE(is_done_by(*lease, *b));
  expect_free();
}

TEST_P(MysqlOnce, AServerThatComesBackRemembersWhatItHasCommitted) {
  auto lease = begin(*a);
  server->kill();
  EXPECT_EQ(code_of(complete(*lease, in(500))), Errc::unreachable);
  server->start_again();
  const auto done = complete(*lease);
  EXPECT_TRUE(done) << done.error().message;
  server->kill();
  server->start_again();
  EXPECT_TRUE(is_done_by(*lease, *client()));
}

TEST_P(MysqlOnce, ALeaseThatIsOverIsLostAlthoughItsRowIsThere) {
  auto lease = begin(*a);
  kill_session(session_of("role = 'holder'"));
  ASSERT_TRUE(eventually([&] { return session_of("role = 'holder'") == "NULL"; }));
  server->ask("UPDATE dlock_locks SET expires_at = UTC_TIMESTAMP(6)");
  EXPECT_EQ(code_of(complete(*lease)), Errc::lost);
  EXPECT_EQ(rows(), 1);
  EXPECT_EQ(marks(), 0);
}

// As if it had been under way for long.
TEST_P(MysqlOnce, ATextThatComesLateNeitherRemembersNorReleasesAnything) {
  const Request early = request("job");
  auto lease = begin(*a, early);
  const auto fence = *lease->fence();
  const auto broken = b->force_release("job", lease->owner_id(), {"a test"}, soon());
  ASSERT_TRUE(broken && broken.value());
  const auto late = session_at(place());
  const auto say_late = [&] {
    const auto its = database();
    const sql::Reply reply =
        late->ask(sql::Statements(*its, "job").complete(early.owner, fence, {"", kDay}, true),
                  soon(), Cancel());
    ASSERT_TRUE(reply.ok()) << reply.error->message;
    EXPECT_FALSE(sql::changed(reply).is_done);
  };
  say_late();
  EXPECT_EQ(marks(), 0);
  auto next = begin(*b);
  say_late();
  EXPECT_EQ(marks(), 0);
  EXPECT_EQ(code_of(complete(*lease)), Errc::lost);
  EXPECT_TRUE(complete(*next));
  say_late();
  EXPECT_TRUE(is_done_by(*next, *a));
  expect_free();
}

// As after a failover, or from a backup: the server gives the number of a row that it has lost
// again.
TEST_P(MysqlOnce, ARowThatIsAnotherOwnersIsNotTakenForOurs) {
  make_tables();
  using Act = Result<void> (*)(Lease&);
  for (const Act act : {Act([](Lease& its) { return its.renew(soon(), Cancel()); }),
                        Act([](Lease& its) { return its.release(soon(), Cancel()); }),
                        Act([](Lease& its) { return complete(its); }), Act([](Lease& its) {
                          return its.end_command(in(1'000), soon(), Cancel());
                        })}) {
    auto lease = begin(*a);
    server->ask("UPDATE dlock_locks SET owner = 'other' WHERE role = 'holder'");
    const std::string before = server->ask("SELECT * FROM dlock_locks");
    EXPECT_EQ(code_of(act(*lease)), Errc::lost);
    EXPECT_EQ(code_of(release(*lease)), Errc::lost);
    EXPECT_EQ(server->ask("SELECT * FROM dlock_locks"), before);
    EXPECT_EQ(marks(), 0);
    lease.reset();
    server->ask("DELETE FROM dlock_locks");
  }
}

// --- what holds it up, and what undoes it

TEST_P(MysqlOnce, WhoeverKeepsTheMarkHoldsItUpAndNoMore) {
  do_job();
  for (const bool tables : {false, true}) {
    SCOPED_TRACE(tables);
    auto lease = begin(*a);
    auto other = tables ? session_at(place()) : keep_mark();
    if (tables) {
      ASSERT_TRUE(other->ask("LOCK TABLES dlock_records WRITE", soon(), Cancel()).ok());
    }
    const auto until = lease->valid_until();
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(code_of(complete(*lease, in(300))), Errc::unreachable);
      EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
    }
    other->close();
    const auto done = complete(*lease);
    EXPECT_TRUE(done) << done.error().message;
    EXPECT_LT(Clock::now(), until);
    EXPECT_TRUE(is_done_by(*lease, *b));
    expect_free();
  }
}

// The release waits for that with mysql-row, whose one connection is busy.
TEST_P(MysqlOnce, ALockIsReleasedAlthoughItsCompletionIsHeldUp) {
  do_job();
  auto lease = begin(*a);
  auto other = keep_mark();
  EXPECT_EQ(code_of(complete(*lease, in(300))), Errc::unreachable);
  EXPECT_TRUE(release(*lease));
  expect_free();
  other->close();
  EXPECT_TRUE(sessions_become(1));  // of `a`
  EXPECT_FALSE(is_done_by(*lease, *b));
}

// A statement is undone, and the transaction goes on.
TEST_P(MysqlOnce, AnInterruptedOneIsUndoneAndCanBeSaidAgainOrReleased) {
  do_job("other");
  server->ask(
      "CREATE TABLE seconds (value INT); CREATE TRIGGER slow BEFORE INSERT ON dlock_records FOR "
      "EACH "
      "ROW DO SLEEP((SELECT COALESCE(SUM(value), 0) FROM seconds))");
  for (const bool again : {false, true}) {
    auto lease = begin(*a);
    const std::string session = session_of("role = 'holder'");
    server->ask("INSERT INTO seconds VALUES (600)");
    std::thread interrupts([&] {
      EXPECT_TRUE(processes_become(1, "state = 'User sleep'"));  // in the name of root
      server->ask("KILL QUERY " + session);
    });
    EXPECT_EQ(code_of(complete(*lease)), Errc::unreachable);
    interrupts.join();
    server->ask("DELETE FROM seconds");
    EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
    EXPECT_EQ(rows(), 1);
    EXPECT_TRUE(renew(*lease));
    const auto left = again ? complete(*lease) : release(*lease);
    EXPECT_TRUE(left) << left.error().message;
    EXPECT_EQ(is_done_by(*lease, *b), again);
    expect_free();
  }
}

// Its answer is not that of the release.
TEST_P(MysqlOnce, AProofThatIsLateIsWaitedForAlsoAfterACompletionThatFailed) {
  do_job("other");
  server->ask("RENAME TABLE dlock_records TO away");
  auto lease = hold(*a, request("job"));
  EXPECT_EQ(code_of(complete(*lease)), Errc::invalid);
  server->pause();
  EXPECT_EQ(code_of(lease->renew(in(300), Cancel())), Errc::unreachable);
  server->resume();
  EXPECT_TRUE(release(*lease));
  server->ask("RENAME TABLE away TO dlock_records");
  expect_free();
}

// The server ends the whole transaction of one of the two: of the holder, who has changed less.
TEST_P(MysqlOnce, ADeadlockEndsNothing) {
  do_job();
  auto lease = begin(*a);
  auto other = keep_mark();
  ASSERT_TRUE(other
                  ->ask("INSERT INTO dlock_keys WITH RECURSIVE numbers AS (SELECT 1 AS seq UNION "
                        "ALL SELECT seq + 1 FROM numbers WHERE seq < 500) SELECT 9, seq, 0 FROM "
                        "numbers",
                        soon(), Cancel())
                  .ok());
  std::thread locks([&] {
    EXPECT_TRUE(processes_become(1, "info LIKE 'SELECT period FROM dlock_records%'"));
    const auto got = other->ask("SELECT * FROM dlock_locks FOR UPDATE", soon(), Cancel());
    EXPECT_TRUE(got.ok()) << got.error->message;
    other->close();
  });
  const auto done = complete(*lease);
  locks.join();
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_TRUE(is_done_by(*lease, *b));
  expect_free();
}

TEST_P(MysqlOnce, WhatTheServerDoesNotRememberIsSaidAndTheLockIsReleased) {
  do_job("other");
  const auto poor = user("SELECT, INSERT, UPDATE, DELETE ON test.dlock_keys");
  grant("SELECT, INSERT, UPDATE, DELETE ON test.dlock_locks");
  grant("SELECT, INSERT, DELETE ON test.dlock_records");
  struct Case {
    std::string breaks, mends, says;
    Errc code;
  };
  for (const Case& one : {
           Case{"RENAME TABLE dlock_records TO away", "RENAME TABLE away TO dlock_records",
                "dlock_records", Errc::invalid},
           Case{"ALTER TABLE dlock_records CHANGE record x BLOB NOT NULL",
                "ALTER TABLE dlock_records CHANGE x record BLOB NOT NULL", "dlock_records",
                Errc::invalid},
           Case{"REVOKE INSERT ON test.dlock_records FROM poor@'%'",
                "GRANT INSERT ON test.dlock_records TO poor@'%'", "may not do that", Errc::denied},
       }) {
    SCOPED_TRACE(one.breaks);
    auto lease = begin(*poor);
    server->ask(one.breaks);
    const Error error = error_of(complete(*lease));
    EXPECT_EQ(error.code, one.code) << error.message;
    EXPECT_TRUE(says(error, one.says)) << error.message;
    EXPECT_EQ(rows(), 1);
    EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
    const auto released = release(*lease);
    EXPECT_TRUE(released) << released.error().message;
    server->ask(one.mends);
    expect_free();
    EXPECT_FALSE(find(*b));
  }
}

// --- rights, tables and other settings

TEST_P(MysqlOnce, ThreeRightsAreEnoughOnATableThatIsThere) {
  make_tables();
  server->ask("DROP TABLE dlock_records");
  {
    auto poor = user("SELECT, INSERT, UPDATE, DELETE ON test.*");
    EXPECT_FALSE(find(*poor));
    const auto listed = poor->list_marks("", soon());
    EXPECT_TRUE(listed && listed.value().empty());
    auto lease = hold(*poor, request("job"));
    const Error error = error_of(poor->prepare_marks("job", soon()));
    EXPECT_EQ(error.code, Errc::denied) << error.message;
    EXPECT_TRUE(says(error, "may not create tables in database")) << error.message;
    EXPECT_TRUE(release(*lease));
  }
  server->ask(mysql::schema_of("dlock_"));
  auto poor = user("SELECT, INSERT, UPDATE, DELETE ON test.dlock_keys");
  grant("SELECT, INSERT, UPDATE, DELETE ON test.dlock_locks");
  grant("SELECT, INSERT, DELETE ON test.dlock_records");
  for (int i = 0; i < 2; ++i) {
    auto lease = begin(*poor);
    server->ask("INSERT INTO dlock_records SELECT " + method_text() + ", 'z', '', '2026-01-01', " +
                record(1));
    EXPECT_TRUE(poor->prepare_marks("job", soon()));
    EXPECT_EQ(marks("name = 'z'"), 0) << "not swept";
    EXPECT_TRUE(complete(*lease));
    EXPECT_TRUE(is_done_by(*lease, *poor));
  }
  const auto forgotten = poor->forget_mark({"job", ""}, soon());
  EXPECT_TRUE(forgotten && forgotten.value());
}

TEST_P(MysqlOnce, ARightThatIsMissingIsFoundBeforeTheJobIsRun) {
  do_job();
  for (const std::string missing : {"SELECT", "INSERT", "DELETE"}) {
    SCOPED_TRACE(missing);
    std::string others = "UPDATE";
    for (const std::string right : {"SELECT", "INSERT", "DELETE"}) {
      if (right != missing) others += ", " + right;
    }
    auto poor = user(others + " ON test.dlock_records");
    const auto found = poor->find_mark({"job", ""}, soon());
    if (missing == "SELECT") {
      EXPECT_EQ(error_of(found).code, Errc::denied);
    } else {
      EXPECT_TRUE(found && found.value());
      const Error error = error_of(poor->prepare_marks("job", soon()));
      EXPECT_EQ(error.code, Errc::denied) << error.message;
      EXPECT_TRUE(says(error, "dlock_records")) << error.message;
    }
  }
}

TEST_P(MysqlOnce, ATableThatIsNotOursIsRefusedBeforeTheJobIsRun) {
  const std::string schema = mysql::schema_of("dlock_");
  for (const std::string& made : {
           schema + "ALTER TABLE dlock_records ENGINE=MyISAM",
           std::string("CREATE TABLE dlock_records (id INT, name TEXT) ENGINE=InnoDB"),
           schema +
               "RENAME TABLE dlock_records TO other; CREATE VIEW dlock_records AS SELECT * FROM "
               "other",
           schema + "ALTER TABLE dlock_records MODIFY name VARCHAR(190) NOT NULL",
           schema + "ALTER TABLE dlock_records DROP PRIMARY KEY",
           schema + "ALTER TABLE dlock_records DROP PRIMARY KEY, ADD PRIMARY KEY (method, name)",
           schema + "ALTER TABLE dlock_records DROP COLUMN record",
       }) {
    SCOPED_TRACE(made);
    server->ask("DROP DATABASE test; CREATE DATABASE test; USE test; " + made);
    const Error error = error_of(client()->prepare_marks("job", soon()));
    EXPECT_EQ(error.code, Errc::invalid) << error.message;
    EXPECT_TRUE(says(error, "dlock_records")) << error.message;
    EXPECT_TRUE(says(error, "--prefix")) << error.message;
    EXPECT_EQ(marks(), 0);
  }
}

TEST_P(MysqlOnce, AServerThatIsReadOnlyTellsWhatIsDoneAndIsWaitedFor) {
  do_job();
  server->ask("SET GLOBAL read_only = 1");
  EXPECT_TRUE(find(*b));
  const Error error = error_of(b->prepare_marks("job", soon()));
  EXPECT_EQ(error.code, Errc::unreachable);
  EXPECT_TRUE(says(error, "is it a replica?")) << error.message;
  server->ask("SET GLOBAL read_only = 0");
  EXPECT_TRUE(b->prepare_marks("job", soon()));
}

TEST_P(MysqlOnce, AServerThatWritesItsLogLaterIsWarnedOf) {
  for (const int flushes : {0, 1, 2}) {
    server->ask("SET GLOBAL innodb_flush_log_at_trx_commit = " + std::to_string(flushes));
    testing::internal::CaptureStderr();
    EXPECT_TRUE(a->prepare_marks("job", soon()));
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find("innodb_flush_log_at_trx_commit=0") != std::string::npos, flushes == 0);
    EXPECT_EQ(said.empty(), flushes != 0) << said;
  }
}

TEST_P(MysqlOnce, WhatTheEndOfATransactionDoesByDefaultDoesNotMatter) {
  do_job("other");
  for (const char* type : {"'CHAIN'", "'RELEASE'"}) {
    SCOPED_TRACE(type);
    server->ask(std::string("SET GLOBAL completion_type = ") + type);
    const auto its = client();
    auto lease = hold(*its, request("job"));
    ASSERT_TRUE(lease);
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(rows_become(0));
    lease = begin(*its);
    ASSERT_TRUE(lease);
    EXPECT_TRUE(complete(*lease));
    EXPECT_TRUE(is_done_by(*lease, *b));
    expect_free();
  }
}

TEST_P(MysqlOnce, NothingIsMadeByThoseWhoLookAndNoTransactionIsLeft) {
  const auto open = [&] { return number("SELECT COUNT(*) FROM information_schema.innodb_trx"); };
  EXPECT_FALSE(find(*a));
  EXPECT_TRUE(a->list_marks("", soon()));
  EXPECT_TRUE(a->forget_mark({"job", ""}, soon()));
  EXPECT_EQ(server->ask("SHOW TABLES"), "");
  do_job();
  EXPECT_TRUE(find(*a));
  EXPECT_TRUE(a->list_marks("", soon()));
  EXPECT_TRUE(a->forget_mark({"job", ""}, soon()));
  EXPECT_TRUE(a->prepare_marks("job", soon()));
  EXPECT_EQ(open(), 0);
}

TEST_P(MysqlOnce, TheMethodsShareTheTableAndNoMarks) {
  do_job();
  for (const char* other : {"table", "row", "version"}) {
    const auto its = connect_mysql(server->url(other));
    EXPECT_EQ(find(*its).has_value(), other == method()) << other;
  }
}

// --- what is in the table

TEST_P(MysqlOnce, TheLongestTimeIsRemembered) {
  auto lease = begin(*a);
  ASSERT_TRUE(lease->complete({"", kLongestRemembered}, soon(), Cancel()));
  const auto mark = find(*b);
  ASSERT_TRUE(mark);
  EXPECT_GT(mark->left, 99 * 365 * kDay);
}

TEST_P(MysqlOnce, RowsThatMakeNoSenseAreNoMarksAndHurtNobody) {
  do_job("job");
  do_job("other");
  server->ask(
      "ALTER TABLE dlock_records MODIFY record LONGBLOB NOT NULL, MODIFY written_at DATETIME(6) "
      "NULL");
  for (const std::string record : {"''", "X'00ff7b5b1b5b33316d0a'", "'{}'", "'[1]'",
                                   "REPEAT('[', 5000000)", "CONCAT(record, REPEAT(' ', 9000))"}) {
    server->ask("UPDATE dlock_records SET record = " + record + " WHERE name = 'job'");
    EXPECT_EQ(error_of(b->find_mark({"job", ""}, soon())).code, Errc::conflict) << record;
    const auto listed = b->list_marks("", soon());
    ASSERT_TRUE(listed);
    EXPECT_EQ(listed.value().size(), 1u) << record;
    do_job("job");
    EXPECT_TRUE(find(*b)) << record;
  }
  for (const std::string change : {"name = X'ff0a'", "name = ''", "written_at = NULL"}) {
    server->ask("UPDATE dlock_records SET " + change + " WHERE name = 'job'");
    const auto listed = b->list_marks("", soon());
    ASSERT_TRUE(listed);
    EXPECT_EQ(listed.value().size(), 1u) << change;
    server->ask("DELETE FROM dlock_records WHERE name <> 'other'");
    do_job("job");
  }
}

TEST_P(MysqlOnce, MarksWhoseTimeIsOverAreSweptAndNoOthers) {
  do_job();
  const auto fill = [&](const std::string& name, const std::string& period, bool is_over) {
    server->ask(
        "INSERT INTO dlock_records WITH RECURSIVE numbers AS (SELECT 1 AS seq UNION ALL SELECT seq "
        "+ "
        "1 FROM numbers WHERE seq < 100) SELECT " +
        method_text() + ", " + name + ", " + period + ", UTC_TIMESTAMP() - INTERVAL 2 DAY, " +
        record(is_over ? 1 : 3) + " FROM numbers");
  };
  fill("'import'", "CONCAT('2025-', seq)", true);
  fill("CONCAT('import-2025-', seq)", "''", true);
  fill("CONCAT('import-2026-', seq)", "''", false);
  fill("CONCAT('a-', seq)", "''", true);
  fill("CONCAT('z-', seq)", "''", false);
  const auto over = [&] { return marks("record LIKE '%:86400000}'"); };
  EXPECT_TRUE(a->prepare_marks("zz", soon()));
  EXPECT_GE(over(), 300 - 32) << "no bound";
  int times = 0;
  while (over() > 0 && times < 1'000) {
    ++times;
    for (const char* key : {"import", "import-2026-5"}) EXPECT_TRUE(a->prepare_marks(key, soon()));
  }
  RecordProperty("times", times);
  EXPECT_EQ(over(), 0) << "LEFT BEHIND: " << server->ask("SELECT name, period FROM dlock_records");
  EXPECT_EQ(marks(), 201);
}

// Only the beginning of the table is looked at, however long it is.
TEST_P(MysqlOnce, ASweepReadsFewRows) {
  do_job();
  server->ask(
      "INSERT INTO dlock_records WITH RECURSIVE numbers AS (SELECT 1 AS seq UNION ALL SELECT seq + "
      "1 "
      "FROM numbers WHERE seq < 150) SELECT " +
      method_text() + ", 'job', CONCAT(a.seq, '-', b.seq), UTC_TIMESTAMP(), " + record(1) +
      " FROM numbers AS a JOIN numbers AS b");
  const auto reads = [&] { return status("Handler_read_next") + status("Handler_read_rnd_next"); };
  const long before = reads();
  EXPECT_TRUE(a->prepare_marks("job", soon()));
  EXPECT_LT(reads() - before, 5'000);
}

TEST_P(MysqlOnce, WhoeverKeepsAMarkThatIsOverHoldsNoSweepUp) {
  do_job();
  server->ask("UPDATE dlock_records SET written_at = UTC_TIMESTAMP() - INTERVAL 2 DAY");
  auto other = keep_mark();
  EXPECT_LT(time_of([&] { EXPECT_TRUE(b->prepare_marks("job", soon())); }), here(Millis{1'500}));
  EXPECT_EQ(marks(), 1);
  other->close();
  EXPECT_TRUE(eventually([&] { return b->prepare_marks("job", soon()) && marks() == 0; }));
}

TEST_P(MysqlOnce, MarksAreNotSweptWithTheKeysThatNobodyUses) {
  FakeClock clock;
  start({.environment = clock.environment()});
  auto lease = begin(*a);
  ASSERT_TRUE(lease->complete({"", 100 * kDay}, soon(), Cancel()));
  clock.jump(Millis{30LL * 86'400'000});
  b = client();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(is_free_for(*b, request(std::to_string(i))));
  EXPECT_TRUE(b->prepare_marks("job", soon()));
  const auto mark = find(*b);
  ASSERT_TRUE(mark);
  EXPECT_LT(mark->left, 71 * kDay);
  EXPECT_GE(mark->age, 30 * kDay);
}

// --- all at once

TEST_P(MysqlOnce, AMarkIsSeenByAllWhoComeLaterWhateverIsCut) {
  std::atomic<int> completed = 0;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      const auto own = through_proxy();
      for (int n = 0; !stop; ++n) {
        const std::string key = "job " + std::to_string(n % 2);
        auto lease = own->acquire(request(key), {.until = in(3'000)});
        if (!lease) continue;
        if (!own->prepare_marks(key, soon())) {
          (void)(*lease)->release(soon(), Cancel());
          continue;
        }
        const std::string period = std::to_string(i) + '-' + std::to_string(n);
        Result<void> done;
        do {
          done = (*lease)->complete({period, kDay}, soon(), Cancel());
        } while (!done && done.error().code == Errc::unreachable);
        const bool is_marked = marks("period = '" + period + "'") == 1;
        EXPECT_EQ(done.has_value(), is_marked)
            << period << ": " << (done ? "" : done.error().message);
        if (done) ++completed;
        if (!done) (void)(*lease)->release(soon(), Cancel());
      }
    });
  }
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  proxy->cut_often(seed, [&] { return completed > 20; });
  proxy->pass();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(completed, 0);
}

// --- a cluster of two, both of which take changes

class MysqlGaleraOnce : public testing::Test, protected MysqlOnceSteps {
 protected:
  void SetUp() override {
    if (find_backend("mysql")->open == nullptr) GTEST_SKIP() << "built without mysql";
    if (!MysqlServer::is_mariadb()) GTEST_SKIP() << "MySQL has no Galera";
    if (!GaleraCluster::available()) GTEST_SKIP() << "galera-4 or rsync is not installed";
    static const GaleraCluster both(Millis{40'000});
    cluster = &both;
    begin(*client(0)).reset();
    cluster->server(0).ask("DELETE FROM dlock_records; DELETE FROM dlock_locks");
  }
  std::unique_ptr<Backend> client(int number) const {
    return connect_mysql(cluster->server(number).url("version"));
  }
  const GaleraCluster* cluster = nullptr;
};

TEST_F(MysqlGaleraOnce, TheOtherServerKnowsAtOnceWhatIsDone) {
  const auto a = client(0), b = client(1);
  for (int i = 0; i < 40; ++i) {
    Backend& does = i % 2 == 0 ? *a : *b;
    Backend& asks = i % 2 == 0 ? *b : *a;
    auto lease = begin(does);
    ASSERT_TRUE(lease);
    EXPECT_TRUE(complete(*lease));
    EXPECT_TRUE(is_done_by(*lease, asks)) << i;
    if (i % 4 < 2) continue;
    const auto forgotten = does.forget_mark({"job", ""}, soon());
    EXPECT_TRUE(forgotten && forgotten.value());
    EXPECT_FALSE(find(asks)) << i;
  }
}

TEST_F(MysqlGaleraOnce, AJobOfBothServersIsDoneOnce) {
  std::atomic<int> runs{0};
  std::list<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      const auto its = client(i % 2);
      for (int n = 0; n < 4; ++n) {
        const std::string period = std::to_string(n);
        auto lease = hold(*its, request("job"));
        ASSERT_TRUE(lease);
        if (find(*its, "job", period)) {
          EXPECT_TRUE(release(*lease));
          continue;
        }
        EXPECT_TRUE(its->prepare_marks("job", soon()));
        const auto done = complete(*lease, soon(), period);
        EXPECT_TRUE(done) << done.error().message;
        ++runs;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(runs, 4);
}

TEST_F(MysqlGaleraOnce, ACompletionWhoseReplyIsLostIsFoundByTheOtherServer) {
  for (const bool is_committed : {false, true}) {
    Proxy proxy("127.0.0.1", cluster->server(0).port());
    const auto its =
        connect_mysql("mysql-version://app:sesame@127.0.0.1:" + std::to_string(proxy.port()) +
                      ",127.0.0.1:" + std::to_string(cluster->server(1).port()) + "/test?tls=off");
    auto lease = begin(*its);
    if (is_committed) {
      proxy.lose_reply_to("REPLACE");
    } else {
      proxy.cut();
    }
    proxy.refuse();
    const auto done = complete(*lease);
    EXPECT_TRUE(done) << done.error().message;
    EXPECT_EQ(proxy.lost_replies(), is_committed ? 1 : 0);
    EXPECT_TRUE(is_done_by(*lease, *client(1)));
    EXPECT_TRUE(is_free_for(*client(0), request("job")));
  }
}

// The lock is broken on one server while the mark is being written on the other.
TEST_F(MysqlGaleraOnce, ACommitThatComesLateIsRefused) {
  const Request early = request("job");
  const auto a = client(0), b = client(1);
  auto lease = begin(*a, early);
  const mysql::MysqlDatabase database(
      std::make_shared<const mysql::Place>(
          mysql::make_place({.url = parse_url(cluster->server(0).url("version")).value()}).value()),
      mysql::Method::version);
  auto its = database.open(soon(), Cancel());
  ASSERT_TRUE(its);
  const std::string text =
      sql::Statements(database, "job").complete(early.owner, *lease->fence(), {"", kDay}, true);
  const auto commit = text.find("COMMIT");
  const auto written = (*its)->ask(text.substr(0, commit - 2), soon(), Cancel());
  ASSERT_TRUE(written.ok()) << written.error->message;
  const auto broken = b->force_release("job", lease->owner_id(), {"a test"}, soon());
  EXPECT_TRUE(broken && broken.value());
  EXPECT_FALSE((*its)->ask(text.substr(commit), soon(), Cancel()).ok());
  EXPECT_FALSE(find(*a));
  EXPECT_FALSE(find(*b));
  EXPECT_EQ(code_of(complete(*lease)), Errc::lost);
  EXPECT_FALSE(find(*b));
}

}  // namespace
}  // namespace dlock::test
