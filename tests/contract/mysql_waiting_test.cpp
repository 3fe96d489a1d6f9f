// What a queue of waiters costs the server, and what can happen to one in it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <list>
#include <thread>

#include "backends/mysql/statements.hpp"
#include "mysql_fixture.hpp"

namespace dlock::test {
namespace {

class MysqlWaiting : public MysqlTest {
 protected:
  // Each releases the lock at once.  False: some have not had it by `end`; they are left in
  // `crowd`.
  static bool all_have_their_turn(std::list<Waiting>& crowd, Deadline end) {
    while (!crowd.empty() && Clock::now() < end) {
      crowd.remove_if([](Waiting& waiting) {
        if (!waiting.done(1)) return false;
        auto lease = waiting.lease();
        EXPECT_TRUE(lease && release(*lease));
        return true;
      });
    }
    return crowd.empty();
  }

  // Nobody looks again while a test runs because a lease is about to end.
  static Request patient() { return patient_as(Mode::exclusive); }
  static Request patient_as(Mode mode) { return request("job", mode, 1, Millis{120'000}); }
  void queue_up(std::size_t count, const std::function<Request()>& wanted) {
    for (std::size_t i = 0; i < count; ++i) {
      line.emplace_back(client(), wanted());
      ASSERT_TRUE(line.back().blocked());
      ASSERT_TRUE(waiters_are(line.size()));  // it is told before it is in the queue
    }
  }
  // Statements so far, each one of a text counted for itself.
  long statements() const { return status("Questions"); }

  // A session with a row in the queue and its marks, whose client does nothing more: as if it were
  // stopped.
  std::unique_ptr<mysql::Connection> stopped_waiter(const Request& wanted = patient()) const {
    auto session = session_at(place());
    EXPECT_TRUE(session->ask(say().join(wanted), soon(), Cancel()).ok());
    return session;
  }
  mysql::Statements say() const { return {method_number(), "dlock_", "job"}; }
  std::string queue() const {
    return server->ask("SELECT GROUP_CONCAT(id ORDER BY id) FROM dlock_locks WHERE kind = 1");
  }

  bool has_room() const { return sessions_now() >= 0; }
  // -1: the server has no connection left; those that have just ended count for a moment.
  long sessions_now() const {
    try {
      return sessions();
    } catch (const std::exception&) {
      return -1;
    }
  }

  std::list<Waiting> line;
};

INSTANTIATE_TEST_SUITE_P(Methods, MysqlWaiting, testing::Values("table", "version"), mysql_name);

// It may be stopped, or not the primary any more.
TEST_P(MysqlWaiting, NobodySleepsOnAServerForLongerThanAMinute) {
  auto lease = hold(*a, request("job", Mode::exclusive, 1, Millis{24 * 3'600'000}));
  ASSERT_NO_FATAL_FAILURE(queue_up(1, patient));
  std::string asked;
  EXPECT_TRUE(eventually([&] {
    asked = server->ask(
        "SELECT info FROM information_schema.processlist WHERE info LIKE '%IF(GET_LOCK(%' AND id "
        "<> CONNECTION_ID()");
    return !asked.empty();
  }));
  EXPECT_NE(asked.find(", 60)"), std::string::npos) << asked;
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(all_have_their_turn(line, in(10'000)));
}

TEST_P(MysqlWaiting, ACrowdAsksNothingAndIsLetInOneByOneInItsOrder) {
  constexpr int kHandOvers = 30;
  auto lease = hold(*a, patient());
  ASSERT_NO_FATAL_FAILURE(queue_up(kCrowd, patient));
  EXPECT_EQ(sessions(), static_cast<long>(kCrowd) + 2);  // the holder, and b

  // The last ones are still finding out whom to wait for.
  ASSERT_TRUE(eventually([&] {
    const long before = statements();
    std::this_thread::sleep_for(Millis{200});
    return statements() - before <= 2;
  }));
  const long idle_from = statements();
  std::this_thread::sleep_for(Millis{2'000});  // in which nothing may happen
  const long idle = statements() - idle_from;
  EXPECT_LT(idle, 20);

  const long from = statements();
  for (int i = 0; i < kHandOvers; ++i) {
    ASSERT_TRUE(release(*lease));
    lease = line.front().lease();
    ASSERT_TRUE(lease);
    line.pop_front();
  }
  const long each = (statements() - from) / kHandOvers;
  RecordProperty("idle", std::to_string(idle));
  RecordProperty("statements", std::to_string(each));
  // Besides the one whose turn it is, some log2(kCrowd) look whom to wait for next: see state.cpp.
  // Seen: 80 (table), 92 (row), 101 (version), each statement of a text counted for itself.  One
  // more of every waiter would be kCrowd.
  EXPECT_LT(each, 140);
  EXPECT_EQ(rows(), static_cast<long>(kCrowd) - kHandOvers + 1);
  // As many leave at once.
  for (Waiting& waiting : line) waiting.cancel();
  line.clear();
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(rows_become(0)) << server->ask(
      "SELECT id, kind, owner, since, expires_at FROM dlock_locks");
  EXPECT_TRUE(sessions_become(1));
}

TEST_P(MysqlWaiting, ThirtyAtOnceOnAKeyThatNobodyKnewAllGetIn) {
  server->ask("DROP TABLE IF EXISTS dlock_keys, dlock_locks");
  for (const Mode mode : {Mode::exclusive, Mode::shared, Mode::slots}) {
    std::list<Waiting> all;
    const std::string key = "new " + std::string(mode_name(mode));
    for (int i = 0; i < 30; ++i) {
      all.emplace_back(client(), request(key, mode, mode == Mode::slots ? 3 : 1));
    }
    EXPECT_TRUE(all_have_their_turn(all, soon() + kPatience)) << mode_name(mode);
    EXPECT_TRUE(rows_become(0)) << mode_name(mode);
  }
}

TEST_P(MysqlWaiting, AnInnerWaiterWhoseSessionIsKilledHoldsNobodyUpAndQueuesAgain) {
  auto lease = hold(*a, patient());
  ASSERT_NO_FATAL_FAILURE(queue_up(4, patient));
  kill_session(session_of("kind = 1 ORDER BY id LIMIT 1", true));
  ASSERT_TRUE(waiters_are(4));
  const auto took = time_of([&] {
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(release(*lease));
      for (auto it = line.begin();; ++it) {
        if (it == line.end()) it = line.begin();
        if (!it->done(1)) continue;
        lease = it->lease();
        line.erase(it);
        break;
      }
      ASSERT_TRUE(lease);
    }
  });
  EXPECT_LT(took, here(Millis{5'000}));
}

// Another process: its sockets are closed by its end, and nothing else tells of it.
TEST_P(MysqlWaiting, AWaiterThatIsKilledHoldsNobodyUp) {
  make_tables();
  for (const std::size_t place : {0U, 1U}) {
    auto lease = hold(*a, patient());
    ASSERT_NO_FATAL_FAILURE(queue_up(place, patient));
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      ::alarm(60);
      auto backend = client();
      (void)backend->acquire(patient(), {});
      ::_exit(0);
    }
    ASSERT_TRUE(waiters_are(place + 1));
    line.emplace_back(client(), patient());
    ASSERT_TRUE(waiters_are(place + 2));
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    const auto took = time_of([&] {
      while (!line.empty()) {
        EXPECT_TRUE(release(*lease));
        lease = line.front().lease();
        ASSERT_TRUE(lease);
        line.pop_front();
      }
    });
    EXPECT_LT(took, here(Millis{4'000}));
    // What its row is good for: the next who waits removes it.
    Waiting next(client(), patient());
    EXPECT_TRUE(waiters_are(1));
    EXPECT_TRUE(rows_become(2));
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(release(*next.lease()));
    EXPECT_TRUE(rows_become(0));
    EXPECT_TRUE(sessions_become(1));
  }
}

// Without its session, only its lease tells when it is over.
TEST_P(MysqlWaiting, TheFirstWaiterBehindADeadHolderLooksNowAndThen) {
  auto lease = hold(*a, brief(8'000));
  kill_session(session_of("kind = 0"));
  Waiting waiting(client(), patient());
  ASSERT_TRUE(waiting.blocked());
  const long before = status("Questions");
  ASSERT_TRUE(waiting.lease());
  const long asked = status("Questions") - before;
  RecordProperty("asked", static_cast<int>(asked));
  EXPECT_LT(asked, 16 * 40);
}

// Its mark has gone before, so the first waiter has to look.
TEST_P(MysqlWaiting, AForceReleaseOfADeadHolderIsSeenSoon) {
  for (const Mode mode : {Mode::exclusive, Mode::shared}) {
    auto lease = hold(*a, patient());
    kill_session(session_of("kind = 0"));
    for (std::size_t i = 0; i < 3; ++i) {
      line.emplace_back(client(), patient_as(mode));
      ASSERT_TRUE(line.back().blocked());
      ASSERT_TRUE(waiters_are(i + 1));
    }
    std::this_thread::sleep_for(Millis{2'000});  // at first, a holder may be connecting again
    const auto broken = b->force_release("job", lease->owner_id(), "a test", soon());
    EXPECT_TRUE(broken && broken.value());
    std::list<std::unique_ptr<Lease>> leases;
    const auto took = time_of([&] {
      while (!line.empty()) {
        leases.push_back(line.front().lease());
        ASSERT_TRUE(leases.back());
        line.pop_front();
        if (mode == Mode::exclusive) {
          EXPECT_TRUE(release(*leases.back()));
        }
      }
    });
    EXPECT_LT(took, here(Millis{1'500}));
    EXPECT_EQ(code_of(renew(*lease)), Errc::lost);
    for (auto& held : leases) {
      if (mode == Mode::shared) {
        EXPECT_TRUE(release(*held));
      }
    }
  }
}

// Several may be stopped at once: a machine, or a container.
TEST_P(MysqlWaiting, FirstWaitersThatDoNotComeArePassedOver) {
  make_tables();
  auto lease = hold(*a, patient());
  const auto first = stopped_waiter();
  const auto second = stopped_waiter();
  Waiting next(client(), patient());
  EXPECT_TRUE(waiters_are(3));
  EXPECT_TRUE(release(*lease));
  const auto took = time_of([&] { lease = next.lease(); });
  EXPECT_LT(took, here(Millis{30'000}));
  EXPECT_TRUE(lease && release(*lease));
  EXPECT_TRUE(rows_become(0));
}

// Its session has its mark while others wait for that, even when its row is gone.
TEST_P(MysqlWaiting, ThoseBehindAStoppedWaiterKeepTheirPlaces) {
  make_tables();
  auto lease = hold(*a, patient());
  const auto stopped = stopped_waiter();
  std::vector<std::string> owners;
  for (std::size_t i = 0; i < 4; ++i) {
    const Request its = patient();
    owners.push_back(its.owner.id);
    line.emplace_back(client(), its);
    ASSERT_TRUE(waiters_are(i + 2));
  }
  EXPECT_TRUE(release(*lease));
  Waiting last(client(), patient());  // and looks at once, which those before it need not do
  const auto took = time_of([&] {
    for (const std::string& owner : owners) {
      lease = line.front().lease();
      ASSERT_TRUE(lease);
      EXPECT_EQ(lease->owner_id(), owner);
      EXPECT_EQ(number("SELECT COUNT(*) FROM dlock_locks WHERE kind = 1"),
                static_cast<long>(line.size()));
      EXPECT_TRUE(release(*lease));
      line.pop_front();
    }
    lease = last.lease();
  });
  EXPECT_LT(took, here(Millis{4'000}));
  EXPECT_TRUE(lease && release(*lease));
}

// Whose session could not be ended does not know it yet.
TEST_P(MysqlWaiting, WhoWasPassedOverIsGrantedNothingBeforeItQueuesAgain) {
  make_tables();
  EXPECT_TRUE(release(*hold(*a, patient())));
  for (const bool passed_over : {true, false}) {
    const Request its = patient();
    const auto session = stopped_waiter(its);
    const auto own = static_cast<std::uint64_t>(number("SELECT MAX(id) FROM dlock_locks"));
    if (passed_over) {
      EXPECT_TRUE(mysql::passed_over(
          session_at(place())->ask(say().pass_over(own), soon(), Cancel()).answers));
    }
    const auto tried = session->ask(say().attempt(its, own), soon(), Cancel());
    ASSERT_TRUE(tried.ok()) << tried.error->message;
    EXPECT_EQ(mysql::attempted(tried.answers).outcome.won == 0, passed_over);
    EXPECT_EQ(rows(), passed_over ? 0 : 1);
  }
}

// A grant that is under way is waited for.
TEST_P(MysqlWaiting, WhoIsBeingGrantedTheLockIsNotPassedOver) {
  make_tables();
  EXPECT_TRUE(release(*hold(*a, patient())));
  const auto first = stopped_waiter();
  const std::string own = server->ask("SELECT MAX(id) FROM dlock_locks");
  const auto grant = [&](const std::string& text) {
    const auto reply = first->ask(text, soon(), Cancel());
    EXPECT_TRUE(reply.ok()) << reply.error->message;
  };
  grant("START TRANSACTION; SELECT version FROM dlock_keys FOR UPDATE");
  auto passing = std::async(std::launch::async, [&] {
    return session_at(place())->ask(say().pass_over(std::stoull(own)), soon(), Cancel());
  });
  EXPECT_TRUE(eventually([&] {
    std::this_thread::sleep_for(Millis{120});  // the table is made anew no sooner
    return number(
               "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK "
               "WAIT'") == 1;
  }));
  grant("DELETE FROM dlock_locks WHERE id = " + own + "; COMMIT");
  const auto passed = passing.get();
  ASSERT_TRUE(passed.ok()) << passed.error->message;
  EXPECT_EQ(mysql::passed_over(passed.answers), false);
}

// Its session may be the next one that the server would grant a row lock; and nobody may end it, if
// it is one of another user.
TEST_P(MysqlWaiting, AWaiterProcessThatIsStoppedHoldsNobodyUp) {
  make_tables();
  server->ask("CREATE USER other@'%'; GRANT ALL ON test.* TO other@'%'");
  for (const std::string user : {"app:sesame", "other"}) {
    auto lease = hold(*a, patient());
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      ::alarm(60);
      auto backend = client_of(user);
      (void)backend->acquire(patient(), {});
      ::_exit(0);
    }
    EXPECT_TRUE(processes_become(1, "state = 'User lock'"));
    ::kill(pid, SIGSTOP);
    ::waitpid(pid, nullptr, WUNTRACED);
    EXPECT_TRUE(release(*lease));
    Waiting next(client(), patient());
    EXPECT_LT(time_of([&] { lease = next.lease(); }), here(Millis{4'000})) << user;
    EXPECT_TRUE(lease && release(*lease));
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    EXPECT_TRUE(rows_become(0));
  }
}

// The server refuses one of two waits for each other, and by turns, since each begins anew.
TEST_P(MysqlWaiting, AWaitThatTheServerRefusesAsADeadlockCostsNoPlaceInTheQueue) {
  const unsigned deadlock = MysqlServer::is_mariadb() ? 1213 : 3058;
  make_tables();
  auto lease = hold(*a, patient());
  const auto first = stopped_waiter();
  const Request its = patient();
  Waiting second(client(), its);
  ASSERT_TRUE(waiters_are(2));
  const std::string id = server->ask("SELECT MAX(id) FROM dlock_locks");
  const std::string wait = "SELECT GET_LOCK('" + mysql::waiter_mark(its.owner.id) + "', 20)";
  for (int i = 0; i < 30; ++i) ASSERT_EQ(first->ask(wait, soon(), Cancel()).code, deadlock) << i;
  EXPECT_EQ(server->ask("SELECT MAX(id) FROM dlock_locks"), id);
  first->close();
  EXPECT_TRUE(release(*lease));
  lease = second.lease();
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->owner_id(), its.owner.id);
  EXPECT_TRUE(release(*lease));
}

// An operator who comes while the server has no connection left is let in as soon as it has one.
TEST_P(MysqlWaiting, AnOperatorWaitsForRoom) {
  start({.settings = {"max_connections=10"}});
  make_tables();
  auto lease = hold(*a, patient());
  std::list<std::thread> others;
  const Deadline end = soon();
  while (has_room() && Clock::now() < end) {
    others.emplace_back([&] {
      try {
        server->ask("DO SLEEP(3)");
      } catch (const std::exception&) {  // no room for this one
      }
    });
  }
  EXPECT_FALSE(has_room());
  EXPECT_EQ(inspect(*client(), "job").holders.size(), 1u);
  EXPECT_TRUE(release(*lease));
  for (auto& other : others) other.join();
}

// Waiters leave some connections to holders that come back, and to operators: 18 of 20 are theirs.
TEST_P(MysqlWaiting, ACrowdLeavesRoomForOperatorsAndAllGetTheirTurn) {
  start({.settings = {"max_connections=20"}});
  make_tables();
  auto lease = hold(*a, patient());
  std::list<Waiting> crowd;
  for (int i = 0; i < 30; ++i) crowd.emplace_back(client(), patient());
  // Those that arrive together fill it for a moment.
  for (auto& waiting : crowd) ASSERT_TRUE(waiting.blocked());
  ASSERT_TRUE(eventually([&] {
    const long now = sessions_now();
    return now >= 15 && now <= 18;
  }));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(inspect(*client(), "job").holders.size(), 1u);
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(all_have_their_turn(crowd, in(120'000)));
  crowd.clear();
  EXPECT_TRUE(rows_become(0));
}

// The only one that the server has room for.
TEST_P(MysqlWaiting, AStoppedWaiterOnAFullServerIsPassedOver) {
  start({.settings = {"max_connections=10"}});
  make_tables();
  auto lease = hold(*a, patient());
  const auto stopped = stopped_waiter();
  std::list<std::thread> others;
  for (int i = 0; i < 6; ++i) {
    others.emplace_back([&] { server->ask("DO SLEEP(12)"); });
  }
  EXPECT_TRUE(processes_become(6, "info LIKE 'DO SLEEP(12)%'"));
  Waiting next(client(), patient());
  EXPECT_TRUE(next.blocked());
  EXPECT_TRUE(release(*lease));
  const auto took = time_of([&] { lease = next.lease(); });
  EXPECT_LT(took, here(Millis{10'000}));
  EXPECT_TRUE(lease && release(*lease));
  for (auto& other : others) other.join();
}

}  // namespace
}  // namespace dlock::test
