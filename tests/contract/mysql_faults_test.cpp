// Connections that end, answers that are lost or never come, and servers that stop.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <list>
#include <random>
#include <thread>

#include "core/patience.hpp"
#include "mysql_fixture.hpp"
#include "support/reserved_port.hpp"

namespace dlock::test {
namespace {

using MysqlFaults = MysqlTest;
INSTANTIATE_TEST_SUITE_P(Methods, MysqlFaults, testing::Values("table", "version"), mysql_name);

std::vector<Request> all_modes(int ttl_ms = 30'000) {
  const Millis ttl{ttl_ms};
  return {request("job", Mode::exclusive, 1, ttl), request("job", Mode::shared, 1, ttl),
          request("job", Mode::slots, 1, ttl)};
}

// --- the holder's connection, and its server

TEST_P(MysqlFaults, WhoseConnectionAnOperatorKillsHasTheLeaseStill) {
  for (const Request& wanted : all_modes()) {
    auto lease = hold(*a, wanted);
    const int events = listen_to(*lease);
    kill_session(session_of("role = 'holder'"));
    EXPECT_LT(time_of([&] { EXPECT_TRUE(util::wait_readable(events, soon())); }),
              here(Millis{1'000}));
    EXPECT_TRUE(renew(*lease));
    EXPECT_FALSE(util::wait_readable(events, Deadline{}));
    EXPECT_EQ(code_of(try_once(*b, mysql_rival_of(wanted))), Errc::busy);
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(rows_become(0));
    EXPECT_TRUE(is_free_for(*b, mysql_rival_of(wanted)));
  }
}

TEST_P(MysqlFaults, AConnectionThatIsKilledBeforeTheKeeperStartsIsNews) {
  auto lease = hold(*a, request("job"));
  const int events = lease->event_fd();
  ASSERT_GE(events, 0);
  EXPECT_FALSE(util::wait_readable(events, Deadline{}));
  kill_session(session_of("role = 'holder'"));
  EXPECT_TRUE(util::wait_readable(events, soon()));
  EXPECT_TRUE(lease->has_news());
  EXPECT_TRUE(renew(*lease));
}

// The connection that it gives up is the last one that the server had.
TEST_P(MysqlFaults, WhoeverGivesUpWithNoConnectionToSpareLeavesNothing) {
  start({.settings = {"max_connections=10"}});
  make_tables();
  auto lease = hold(*a, request("job"));
  Waiting waiting(client(), request("job"));
  ASSERT_TRUE(waiters_are(1));
  std::vector<std::unique_ptr<mysql::Connection>> others;
  for (;;) {
    auto other = mysql::Connection::open(place(), soon(), Cancel());
    if (!other) {
      EXPECT_TRUE(other.error().is_full) << other.error().message;
      break;
    }
    others.push_back(std::move(*other));
  }
  waiting.cancel();
  EXPECT_EQ(code_of(waiting.result()), Errc::cancelled);
  EXPECT_EQ(rows(), 1);
  EXPECT_TRUE(release(*lease));
}

// A server that was restarted counts its connections from the beginning.
TEST_P(MysqlFaults, AWaiterThatConnectsAgainKillsNobodyElsesSession) {
  auto lease = hold(*a, request("job"));
  for (int i = 0; i < 100; ++i) inspect(*client(), "job");
  Waiting waiter(through_proxy(), request("job"));
  ASSERT_TRUE(waiters_are(1));
  const long session = std::stol(session_of("role = 'waiter'"));
  proxy->refuse();
  server->start_again();
  std::vector<std::unique_ptr<Backend>> programs;
  const auto is_there = [&] { return sessions("id = " + std::to_string(session)) == 1; };
  for (int i = 0; i < 130; ++i) {
    programs.push_back(client());
    inspect(*programs.back(), "job");
  }
  ASSERT_TRUE(is_there());
  proxy->pass();
  (void)lease->release(soon(), Cancel());
  EXPECT_TRUE(release(*waiter.lease()));
  EXPECT_TRUE(is_there());
}

TEST_P(MysqlFaults, AServerThatDiesRightAfterAGrantDoesNotGiveItsNumberAgain) {
  std::uint64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    auto lease = hold(*a, brief(1'000));
    EXPECT_GT(*lease->fence(), last);
    last = *lease->fence();
    server->kill();
    lease.reset();
    server->start_again();
  }
}

// Somebody is about to lock the tables while a grant is being committed: the grant is heard of.
TEST_P(MysqlFaults, AGrantThatIsCommittedIsHeardOf) {
  if (!MysqlServer::is_mariadb()) GTEST_SKIP() << "MySQL has no BACKUP STAGE";
  make_tables();
  auto lease = hold(*a, brief(1'500));
  Waiting waiting(client(), request("job"));
  ASSERT_TRUE(waiters_are(1));
  kill_session(session_of("role = 'holder'"));  // and so nobody keeps the lease
  std::thread backup([&] {
    server->ask(
        "BACKUP STAGE START; BACKUP STAGE FLUSH; BACKUP STAGE BLOCK_DDL; BACKUP STAGE "
        "BLOCK_COMMIT; DO SLEEP(3); BACKUP STAGE END");
  });
  ASSERT_TRUE(processes_become(1, "info LIKE 'DO SLEEP%'"));
  ASSERT_TRUE(processes_become(1, "user = 'app' AND state LIKE 'Waiting for backup lock%'"));
  std::thread tables([&] { server->ask("LOCK TABLES dlock_locks WRITE; DO SLEEP(6)"); });
  ASSERT_TRUE(
      processes_become(1, "user = 'root' AND state LIKE 'Waiting for table metadata lock%'"));
  backup.join();
  EXPECT_TRUE(waiting.done(3'000));
  tables.join();
  lease = waiting.lease();
  EXPECT_TRUE(lease && release(*lease));
  EXPECT_TRUE(rows_become(0));
}

// With mysql-row by wait_timeout, which the session has from the ttl.
TEST_P(MysqlFaults, AHolderThatIsCutOffFreesTheLockWithItsTtl) {
  for (const bool shared_first : {false, true}) {
    const Millis ttl{2'000};
    const Request wanted = request("job", shared_first ? Mode::shared : Mode::exclusive, 1, ttl);
    auto lease = hold(*through_proxy(), wanted);
    EXPECT_TRUE(renew(*lease));
    Waiting waiting(client(), request("job"));
    ASSERT_TRUE(waiters_are(1));
    proxy->blackhole();
    const Deadline cut = Clock::now();
    auto next = waiting.lease();
    ASSERT_TRUE(next);
    EXPECT_GE(Clock::now(), lease->valid_until());  // it has given up by then
    EXPECT_LT(Clock::now() - cut, ttl + Millis{4'000});
    EXPECT_EQ(code_of(lease->renew(in(200), Cancel())), Errc::unreachable);
    proxy->pass();
    EXPECT_NE(code_of(lease->release(in(1'000), Cancel())), Errc::busy);
    EXPECT_TRUE(renew(*next));
    EXPECT_TRUE(release(*next));
    EXPECT_TRUE(rows_become(0));
  }
}

// --- given up

TEST_P(MysqlFaults, WhoeverGivesUpLeavesNeitherRowNorSession) {
  for (const Request& wanted : all_modes()) {
    auto lease = hold(*a, wanted);
    Millis longest{0};
    for (const bool cancelled : {true, false}) {
      const Errc code = cancelled ? Errc::cancelled : Errc::busy;
      for (const int after_ms : {0, 1, 2, 4, 8, 16, 32, 64}) {
        SCOPED_TRACE(after_ms);
        Waiting waiting(client(), mysql_rival_of(wanted), cancelled ? kNever : in(after_ms));
        if (cancelled) {
          (void)waiting.done(after_ms);
          waiting.cancel();
        }
        longest = std::max(longest, time_of([&] { EXPECT_EQ(code_of(waiting.result()), code); }));
      }
      // While it waits in the queue: one for the holder, and one for that one.
      std::list<Waiting> two;
      for (int i = 0; i < 2; ++i) {
        two.emplace_back(client(), mysql_rival_of(wanted), cancelled ? kNever : in(400));
        ASSERT_TRUE(two.back().blocked());
      }
      for (Waiting& waiting : two) {
        if (cancelled) waiting.cancel();
      }
      longest = std::max(longest, time_of([&] {
                           for (Waiting& waiting : two) EXPECT_EQ(code_of(waiting.result()), code);
                         }));
    }
    // On a machine that stands still for so long, the next look removes the row of a dead session.
    if (longest < kFarewell) {
      EXPECT_TRUE(rows_become(1));
    }
    EXPECT_TRUE(sessions_become(1));
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(is_free_for(*b, wanted));
    EXPECT_TRUE(rows_become(0));
  }
}

// The client library would read on for as long as each read brings something.
TEST_P(MysqlFaults, WhoeverGivesUpAServerThatGreetsByteByByteEndsTheConnection) {
  ReservedPort port;
  const Fd& listener = port.listen();
  auto trickle = std::async(std::launch::async, [&] {
    const Fd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ::send(client.get(), "\x00\x40\x00\x00", 4, MSG_NOSIGNAL);  // 16,384 bytes follow
    return eventually([&] {
      ::send(client.get(), "1", 1, MSG_NOSIGNAL);
      return util::wait_readable(client.get(), in(50));  // its end
    });
  });
  const auto url = "mysql://app@127.0.0.1:" + std::to_string(port.port()) + "/test?tls=off";
  const auto trickling = std::make_shared<const mysql::Place>(
      mysql::make_place({.url = parse_url(url).value()}).value());
  const auto opened = mysql::Connection::open(trickling, in(500), Cancel());
  EXPECT_EQ(error_of(opened).code, Errc::unreachable);
  EXPECT_TRUE(trickle.get());
}

TEST_P(MysqlFaults, WhoeverGivesUpASilentServerDoesSoInTime) {
  for (const bool cancelled : {true, false}) {
    auto lease = hold(*a, request("job"));
    Waiting waiting(through_proxy(400), brief(1'000), cancelled ? kNever : in(800));
    ASSERT_TRUE(waiters_are(1));
    proxy->blackhole();
    if (cancelled) waiting.cancel();
    Errc code = Errc::invalid;
    EXPECT_LT(time_of([&] { code = code_of(waiting.result()); }), here(Millis{5'000}));
    // In the middle of a question that is no wait the server is what was in the way.
    EXPECT_TRUE(cancelled ? code == Errc::cancelled
                          : code == Errc::busy || code == Errc::unreachable);
    proxy->pass();
    proxy->cut();
    EXPECT_TRUE(release(*lease));
    // The waiter has its place until the server notices that its connection is cut.
    EXPECT_TRUE(eventually([&] { return is_free_for(*b, request("job")); }));
    EXPECT_TRUE(sessions_become(1));
  }
}

}  // namespace
}  // namespace dlock::test
