// What a server, its administrator and its other users may have made of it.
#include <gtest/gtest.h>

#include "backends/mysql/mysql_backend.hpp"
#include "backends/mysql/sql.hpp"
#include "mysql_fixture.hpp"
#include "support/fake_clock.hpp"

namespace dlock::test {
namespace {

class MysqlServers : public MysqlTest {
 protected:
  // May log in, and do in the database test what `rights` says.
  std::unique_ptr<Backend> user(const std::string& name, const std::string& rights) {
    server->ask("DROP USER IF EXISTS " + name + "@'%'; CREATE USER " + name + "@'%'; GRANT " +
                rights + " TO " + name + "@'%'");
    return client_of(name);
  }
  // Of all that is in the database test.
  std::string contents() const {
    std::string all = server->ask(
        "SELECT table_name, engine, table_type FROM information_schema.tables WHERE table_schema = "
        "'test' ORDER BY table_name");
    for (const char* table : {"dlock_keys", "dlock_locks"}) {
      if (all.find(table) != std::string::npos) {
        all += '\n' + server->ask("SELECT * FROM " + std::string(table));
      }
    }
    return all;
  }
  // A row of dlock_locks that somebody wrote: owner, expires_at, record are SQL.
  void write_row(const std::string& role, const std::string& mode, const std::string& owner,
                 const std::string& expires, const std::string& record = "''") const {
    server->ask(
        "SET SESSION sql_mode = ''; INSERT INTO dlock_locks (method, name, role, slot, owner, "
        "mode, slots, fence, since, expires_at, record) VALUES (" +
        method_text() + ", 'job', '" + role + "', 1, " + owner + ", '" + mode +
        "', 0, 0, '1000-01-01', " + expires + ", " + record + ")");
  }
  // Runs, lists, shows and frees: `lease` may be renewed.
  void expect_all_works(Backend& backend) {
    for (const Request& wanted : {request("job"), shared("job"), slots("job", 2)}) {
      auto lease = hold(backend, wanted);
      ASSERT_TRUE(lease);
      EXPECT_TRUE(renew(*lease));
      EXPECT_EQ(inspect(backend, "job").holders.size(), 1u);
      const auto listed = backend.list("", soon());
      EXPECT_TRUE(listed && listed.value().size() == 1);
      EXPECT_TRUE(release(*lease));
      lease = hold(backend, wanted);
      const auto broken = backend.force_release("job", lease->owner_id(), {"a test"}, soon());
      EXPECT_TRUE(broken && broken.value());
      EXPECT_EQ(code_of(renew(*lease)), Errc::lost);
      EXPECT_TRUE(rows_become(0));
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Methods, MysqlServers, testing::Values("table", "version"), mysql_name);

// --- full, read-only, impatient

TEST_P(MysqlServers, NoConnectionLeftSaysSo) {
  start({.settings = {"max_connections=10"}});
  make_tables();
  a = client();
  b = client();
  std::vector<std::unique_ptr<Lease>> leases;
  std::optional<Error> error;  // the first one: a connection that has just ended counts a moment
  for (int i = 0; i < 12 && !error; ++i) {
    auto lease = try_once(*a, request("job " + std::to_string(i)));
    if (lease) leases.push_back(std::move(*lease));
    if (!lease) error = lease.error();
  }
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Errc::unreachable);
  EXPECT_TRUE(says(*error, "max_connections")) << error->message;
  EXPECT_EQ(rows(), static_cast<long>(leases.size()));  // root has one more
  for (auto& lease : leases) {
    EXPECT_TRUE(renew(*lease));
    EXPECT_TRUE(release(*lease));
  }
  EXPECT_TRUE(rows_become(0));
}

TEST_P(MysqlServers, AServerThatIsReadOnlyIsNotBusy) {
  for (const bool known : {false, true}) {
    if (known) make_tables();
    server->ask("SET GLOBAL read_only = 1");
    for (const Deadline until : {Deadline{}, in(1'000)}) {
      const Error error = error_of(a->acquire(request("job"), {.until = until}));
      EXPECT_EQ(error.code, Errc::unreachable);
      EXPECT_TRUE(says(error, "is it a replica?")) << error.message;
    }
    server->ask("SET GLOBAL read_only = 0");
    if (known) {
      EXPECT_EQ(rows(), 0);
    }
  }
  EXPECT_TRUE(is_free_for(*a, request("job")));
}

TEST_P(MysqlServers, OfTwoServersTheOneThatTakesChangesIsAsked) {
  MysqlServer other;
  server->ask("SET GLOBAL read_only = 1");
  const auto at = [](const MysqlServer& it) { return "127.0.0.1:" + std::to_string(it.port()); };
  const auto both = [&] {
    return connect_mysql("mysql-" + method() + "://app:sesame@" + at(*server) + ',' + at(other) +
                         "/test");
  };
  auto lease = hold(*both(), request("job"));
  ASSERT_TRUE(lease);
  EXPECT_EQ(other.ask("SELECT COUNT(*) FROM dlock_locks"), "1");
  EXPECT_TRUE(renew(*lease));
  EXPECT_TRUE(release(*lease));
  other.ask("SET GLOBAL read_only = 1");
  const Error error = error_of(try_once(*both(), request("job")));
  EXPECT_EQ(error.code, Errc::unreachable);
  for (const std::string& text : {at(*server), at(other), std::string("read_only")}) {
    EXPECT_TRUE(says(error, text)) << error.message;
  }
}

TEST_P(MysqlServers, ImpatientDefaultsDoNotMatter) {
  std::vector<std::string> settings{"innodb_lock_wait_timeout=1", "lock_wait_timeout=1",
                                    "wait_timeout=1", "interactive_timeout=1"};
  if (MysqlServer::is_mariadb()) {
    for (const char* setting :
         {"max_statement_time=0.3", "idle_transaction_timeout=1",
          "idle_write_transaction_timeout=1", "idle_readonly_transaction_timeout=1"}) {
      settings.emplace_back(setting);
    }
  } else {
    settings.emplace_back("max_execution_time=300");
  }
  start({.settings = settings});
  auto lease = hold(*a, request("job"));
  const auto session = session_of("role = 'holder'");
  Waiting waiting(client(), request("job"));
  ASSERT_TRUE(waiters_are(1));
  const std::string waits = server->ask("SELECT owner FROM dlock_locks WHERE role = 'waiter'");
  EXPECT_FALSE(waiting.done(2'500));  // longer than each of them
  EXPECT_EQ(server->ask("SELECT owner FROM dlock_locks WHERE role = 'waiter'"), waits);
  EXPECT_EQ(session_of("role = 'holder'"), session);
  EXPECT_TRUE(renew(*lease));
  EXPECT_EQ(session_of("role = 'holder'"), session);
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(release(*waiting.lease()));
  EXPECT_TRUE(rows_become(0));
}

// As MariaDB 11.8 does with error 1020 when a renewal changes the row at the same time.
TEST_P(MysqlServers, AForceReleaseThatMeetsADeadlockIsTriedAgain) {
  auto lease = hold(*a, request("job"));
  server->ask(
      "CREATE TABLE deadlocks (n INT) ENGINE=MyISAM; INSERT INTO deadlocks VALUES (2);\n"
      "DELIMITER //\n"
      "CREATE TRIGGER deadlock BEFORE UPDATE ON dlock_locks FOR EACH ROW\n"
      "BEGIN\n"
      "  IF (SELECT n FROM deadlocks) > 0 THEN\n"
      "    UPDATE deadlocks SET n = n - 1;\n"
      "    SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213;\n"
      "  END IF;\n"
      "END//\n");
  const auto broken = b->force_release("job", lease->owner_id(), {"test"}, soon());
  if (!broken) FAIL() << broken.error().message;
  EXPECT_TRUE(broken.value());
  EXPECT_EQ(server->ask("SELECT n FROM deadlocks"), "0");
}

// --- rights

TEST_P(MysqlServers, FourRightsAreEnoughOnTablesThatAreThere) {
  auto poor = user("poor", "USAGE ON *.*");
  server->ask("GRANT SELECT, INSERT, UPDATE, DELETE ON test.* TO poor@'%'");
  const Error error = error_of(try_once(*poor, request("job")));
  EXPECT_EQ(error.code, Errc::denied);
  EXPECT_TRUE(says(error, "may not create tables in database")) << error.message;
  EXPECT_TRUE(says(error, "an administrator must run: dlock backends --schema mysql | mariadb "))
      << error.message;
  EXPECT_TRUE(inspect(*poor, "job").holders.empty());
  server->ask(mysql::schema_of("dlock_"));  // what it says is what is needed
  expect_all_works(*poor);
  // On the two tables is enough, too.
  server->ask("REVOKE ALL ON test.* FROM poor@'%'");
  for (const char* table : {"dlock_keys", "dlock_locks"}) {
    server->ask("GRANT SELECT, INSERT, UPDATE, DELETE ON test." + std::string(table) +
                " TO poor@'%'");
  }
  expect_all_works(*client_of("poor"));
}

TEST_P(MysqlServers, ARightThatIsMissingIsDeniedAndNothingIsLeft) {
  make_tables();
  const std::vector<std::string> rights{"SELECT", "INSERT", "UPDATE", "DELETE"};
  for (std::size_t missing = 0; missing < rights.size(); ++missing) {
    std::string others;
    for (std::size_t i = 0; i < rights.size(); ++i) {
      if (i != missing) others += (others.empty() ? "" : ", ") + rights[i];
    }
    auto poor = user("poor" + std::to_string(missing), others + " ON test.*");
    for (const bool known : {false, true}) {
      SCOPED_TRACE(rights[missing] + (known ? " known" : " new"));
      server->ask("DELETE FROM dlock_keys");
      if (known) {
        EXPECT_TRUE(is_free_for(*a, request("job")));
      }
      const Error error = error_of(try_once(*poor, request("job")));
      EXPECT_EQ(error.code, Errc::denied) << error.message;
      EXPECT_TRUE(says(error, "may not do that")) << error.message;
      EXPECT_EQ(rows(), 0);
      EXPECT_TRUE(eventually([&] { return is_free_for(*a, request("job")); }));
    }
  }
}

TEST_P(MysqlServers, AnotherUserMayBreakALease) {
  auto other = user("other", "ALL ON test.*");
  auto lease = hold(*a, request("job"));
  const auto broken = other->force_release("job", lease->owner_id(), {"a test"}, soon());
  EXPECT_TRUE(broken && broken.value());
  const Error error = error_of(renew(*lease));
  EXPECT_EQ(error.code, Errc::lost);
  EXPECT_TRUE(says(error, "a test")) << error.message;
  EXPECT_TRUE(rows_become(0));
  EXPECT_TRUE(is_free_for(*b, request("job")));
}

// --- tables of others

TEST_P(MysqlServers, TablesThatAreNotOursAreRefusedAndNotTouched) {
  const std::string schema = mysql::schema_of("dlock_");
  const std::string foreign = " (id INT, name TEXT) ENGINE=InnoDB";
  const auto replaced = [](std::string text, const std::string& from, const std::string& to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
    return text;
  };
  for (const std::string& made : {
           replaced(schema, "ENGINE=InnoDB", "ENGINE=MyISAM"),
           schema + "ALTER TABLE dlock_keys ENGINE=MyISAM",
           schema +
               "ALTER TABLE dlock_locks ENGINE=" + (MysqlServer::is_mariadb() ? "Aria" : "MyISAM"),
           "CREATE TABLE dlock_locks" + foreign,
           "CREATE TABLE dlock_keys" + foreign,
           schema + "ALTER TABLE dlock_locks DROP COLUMN why, ADD COLUMN x INT",
           replaced(schema, "dlock_", "real_") + "CREATE VIEW dlock_keys AS SELECT * FROM "
                                                 "real_keys; CREATE VIEW dlock_locks AS SELECT * "
                                                 "FROM real_locks",
           schema + "ALTER TABLE dlock_locks MODIFY owner VARBINARY(8) NOT NULL",
           schema + "ALTER TABLE dlock_keys MODIFY name VARBINARY(2) NOT NULL",
           schema + "ALTER TABLE dlock_keys MODIFY name VARCHAR(190) NOT NULL",
           schema + "ALTER TABLE dlock_keys DROP PRIMARY KEY",
           schema + "ALTER TABLE dlock_locks DROP KEY sole",
       }) {
    SCOPED_TRACE(made);
    server->ask("DROP DATABASE test; CREATE DATABASE test");
    server->ask("USE test; " + made);
    const std::string before = contents();
    const Error error = error_of(try_once(*client(), request("job")));
    EXPECT_EQ(error.code, Errc::invalid);
    EXPECT_TRUE(says(error, "dlock_")) << error.message;
    EXPECT_TRUE(says(error, "--prefix")) << error.message;
    EXPECT_EQ(contents(), before);
  }
  expect_all_works(*client({.prefix = "mine_"}));
}

TEST_P(MysqlServers, AServerWithoutInnoDbIsRefused) {
  if (!MysqlServer::is_mariadb()) GTEST_SKIP() << "MySQL does not start without InnoDB";
  start({.settings = {"innodb=OFF", "default_storage_engine=Aria"}});
  const std::string port = std::to_string(server->port());
  const std::string twice = "mysql-" + method() + "://app:sesame@127.0.0.1:" + port;
  for (const std::string& url : {server->url(method()), twice + ",localhost:" + port + "/test"}) {
    const Error error = error_of(try_once(*connect_mysql(url), request("job")));
    EXPECT_EQ(error.code, Errc::invalid);
    EXPECT_TRUE(says(error, "has no InnoDB, which dlock needs")) << error.message;
  }
}

TEST_P(MysqlServers, AClusterIsRefusedByTheMethodsThatItWouldBetray) {
  if (!MysqlServer::is_mariadb()) GTEST_SKIP() << "MySQL has no Galera";
  start({.settings = {"wsrep_on=1"}});
  for (const std::string method : {"table", "row", "version"}) {
    const auto lease = try_once(*connect_mysql(server->url(method)), request("job"));
    if (method == "version") {
      EXPECT_TRUE(lease || lease.error().code == Errc::unreachable);  // the node is not ready
      continue;
    }
    ASSERT_FALSE(lease);
    EXPECT_EQ(lease.error().code, Errc::unsupported) << lease.error().message;
    EXPECT_TRUE(says(lease.error(), "use mysql-version")) << lease.error().message;
  }
}

TEST_P(MysqlServers, ABinaryLogOfStatementsIsRefusedWithWhatToDo) {
  start({.settings = {"log_bin=log", "binlog_format=STATEMENT", "server_id=1"}});
  const Error error = error_of(try_once(*a, request("job")));
  EXPECT_EQ(error.code, Errc::unsupported);
  EXPECT_TRUE(says(error, "binlog_format")) << error.message;
  EXPECT_EQ(rows(), 0);
  server->ask("SET GLOBAL binlog_format = MIXED");
  expect_all_works(*client());
}

// One more reason to take a leased method where tables are changed or copied while jobs run.
TEST_P(MysqlServers, AChangeOfTheTablesWaitsForNoHolder) {
  auto lease = hold(*a, request("job"));
  const std::string change = "SET SESSION lock_wait_timeout = 1; ALTER TABLE dlock_keys FORCE";
  EXPECT_NO_THROW(server->ask(change));
  EXPECT_TRUE(lease->renew(soon(), Cancel()));
  EXPECT_TRUE(release(*lease));
  EXPECT_NO_THROW(server->ask(change));
}

// --- names and rows

TEST_P(MysqlServers, SqlInNamesIsTakenAsItIs) {
  const std::string foreign = "j\u00f6b \U0001F512";
  for (const std::string& text :
       {std::string("'; DROP TABLE dlock_locks; -- "), std::string("\\' OR 1=1 #"),
        std::string("\"`x`\""), std::string("X'00'"), std::string("100%_"), std::string("$1 ?"),
        std::string("/*!50000 DROP */"), foreign}) {
    SCOPED_TRACE(text);
    Request wanted = request(text);
    wanted.owner.label = text;
    const std::string id = text == foreign ? wanted.owner.id : text;  // ASCII only
    wanted.owner.id = id;
    wanted.owner.command = text;
    auto lease = hold(*a, wanted);
    ASSERT_TRUE(lease);
    EXPECT_EQ(
        server->ask("SELECT HEX(name), HEX(owner) FROM dlock_locks"),
        server->ask("SELECT HEX(" + mysql::literal(text) + "), HEX(" + mysql::literal(id) + ")"));
    const auto seen = inspect(*b, text);
    ASSERT_EQ(seen.holders.size(), 1u);
    EXPECT_EQ(seen.holders[0].owner.id, id);
    EXPECT_EQ(seen.holders[0].owner.label, text);
    EXPECT_EQ(seen.holders[0].owner.command, text);
    const auto listed = b->list(text.substr(0, 3), soon());
    ASSERT_TRUE(listed);
    ASSERT_EQ(listed.value().size(), 1u);
    EXPECT_EQ(listed.value()[0].key, text);
    EXPECT_TRUE(renew(*lease));
    const auto none = b->force_release(text, id + '\'', {text}, soon());
    EXPECT_TRUE(none && !none.value());
    EXPECT_TRUE(b->force_release(text, id, {text}, soon()).value());
    EXPECT_TRUE(says(error_of(renew(*lease)), text == foreign ? "was" : text));
  }
  auto all = b->list("%", soon());
  EXPECT_TRUE(all && all.value().empty());
  for (const char* prefix : {"x`y", "a b", "a'b", "a;b", "a.b"}) {
    EXPECT_EQ(error_of(open_mysql(server->url(method()), {.prefix = prefix})).code, Errc::invalid);
  }
}

TEST_P(MysqlServers, KeysThatACollationWouldMergeAreDistinct) {
  std::vector<std::unique_ptr<Lease>> leases;
  for (const char* key : {"job", "Job", "job ", "j\u00f6b", "jo\u0308b", "job\xc2\xa0"}) {
    auto lease = try_once(*a, request(key));
    ASSERT_TRUE(lease) << key;
    leases.push_back(std::move(*lease));
  }
  const auto listed = b->list("", soon());
  EXPECT_TRUE(listed && listed.value().size() == leases.size());
}

TEST_P(MysqlServers, RowsThatMakeNoSenseHurtNobody) {
  make_tables();
  const std::string past = "'1000-01-01'";
  const std::string garbage = "X'00ff7b5b1b5b33316d0a'";
  server->ask("ALTER TABLE dlock_locks MODIFY record LONGBLOB NOT NULL");
  write_row("holder", "?", "'a'", past);
  write_row("?", "exclusive", "'b'", "'9999-12-31'");
  write_row("waiter", "exclusive", "''", "NULL");
  write_row("waiter", "?", garbage, "'9999-12-31'", garbage);
  write_row("holder", "exclusive", "CONCAT(" + garbage + ", 2)", past, "REPEAT('[', 5000000)");
  write_row("broken", "?", "REPEAT('x', 64)", "NULL", garbage);
  EXPECT_TRUE(inspect(*b, "job").holders.empty());
  EXPECT_TRUE(inspect(*b, "job").waiters->empty());
  EXPECT_TRUE(b->list("", soon()));
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 2)}) {
    auto lease = try_once(*a, wanted);
    ASSERT_TRUE(lease) << lease.error().message;
    Waiting waiting(client(), mysql_rival_of(wanted));
    EXPECT_TRUE(wanted.mode == Mode::slots || waiters_are(1));
    EXPECT_TRUE(release(**lease));
    EXPECT_TRUE(release(*waiting.lease()));
  }
}

// A lease that nothing ends: not of ours, and kept as what it says it is.
TEST_P(MysqlServers, AHolderWithoutAnEndIsShownAndKeepsOthersOut) {
  make_tables();
  for (const std::string owner : {"x", "\xf0\x9f\x98\x80\n"}) {
    const std::string mode = owner == "x" ? "exclusive" : "?";
    SCOPED_TRACE(mode);
    write_row("holder", mode, mysql::literal(owner), "NULL");
    const auto seen = inspect(*b, "job");
    ASSERT_EQ(seen.holders.size(), 1u);
    EXPECT_TRUE(seen.holders[0].endless);
    EXPECT_FALSE(seen.holders[0].expires);
    EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
    EXPECT_EQ(code_of(try_once(*a, shared("job"))), Errc::busy);
    EXPECT_EQ(code_of(try_once(*a, slots("job", 2))), Errc::conflict);
    Waiting waiting(client(), request("job"));
    ASSERT_TRUE(waiters_are(1));
    const long from = status("Questions");
    EXPECT_FALSE(waiting.done(1'000));  // and does not ask all the time meanwhile
    EXPECT_LT(status("Questions") - from, 300);
    const auto broken = b->force_release("job", owner, {"a test"}, soon());
    EXPECT_TRUE(broken && broken.value());
    EXPECT_TRUE(release(*waiting.lease()));
    server->ask("DELETE FROM dlock_locks");
  }
}

// --- time

// The session of a holder is not ended by it.
TEST_P(MysqlServers, AServerWhoseClockJumpsForwardTakesNoLockFromAHolderThatIsThere) {
  FakeClock clock;
  start({.environment = clock.environment()});
  auto lease = hold(*a, request("job"));
  EXPECT_TRUE(renew(*lease));
  clock.jump(Millis{3'600'000});
  EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
  EXPECT_EQ(inspect(*b, "job").holders.size(), 1u);
  EXPECT_TRUE(renew(*lease));
  clock.jump(Millis{3'600'000});
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(is_free_for(*b, request("job")));
  EXPECT_TRUE(rows_become(0));
}

// What is left then is the time that stands in the row.
TEST_P(MysqlServers, AServerWhoseClockJumpsForwardEndsTheLeaseOfWhoeverIsNotThere) {
  FakeClock clock;
  start({.environment = clock.environment()});
  hold(*a, request("job")).reset();
  EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
  clock.jump(Millis{3'600'000});
  EXPECT_TRUE(is_free_for(*b, request("job")));
}

TEST_P(MysqlServers, AServerWhoseClockJumpsBackKeepsHoldersAndWakesWaiters) {
  FakeClock clock;
  start({.environment = clock.environment()});
  auto lease = hold(*a, request("job"));
  Waiting waiting(client(), request("job"));
  ASSERT_TRUE(waiters_are(1));
  clock.jump(Millis{-3'600'000});
  // The kernel's clock does not follow, so a lock wait of the server times out at once: a renewal
  // that meets the waiter's transaction fails, and the next one does not.
  EXPECT_TRUE(eventually([&] {
    const auto renewed = renew(*lease);
    EXPECT_TRUE(renewed || code_of(renewed) == Errc::unreachable) << renewed.error().message;
    return static_cast<bool>(renewed);
  }));
  EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
  EXPECT_EQ(inspect(*b, "job").holders.size(), 1u);
  EXPECT_FALSE(waiting.done(100));
  EXPECT_TRUE(release(*lease));
  lease = waiting.lease();
  ASSERT_TRUE(lease);
  EXPECT_TRUE(renew(*lease));
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(rows_become(0));
}

}  // namespace
}  // namespace dlock::test
