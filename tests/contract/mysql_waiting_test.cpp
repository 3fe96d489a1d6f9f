// What a queue of waiters costs the server, and what can happen to one in it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <list>
#include <thread>

#include "backends/sql/statements.hpp"
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

  // A process that waits, until it is killed.
  pid_t fork_waiter() const {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(120);
      auto backend = client();
      (void)backend->acquire(patient(), {});
      ::_exit(0);
    }
    EXPECT_GT(pid, 0);
    return pid;
  }
  static void kill(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
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
  // A release, and what the next two say: one takes the lock, and the other one watches it.
  EXPECT_LT(each, 40);
  EXPECT_EQ(rows(), static_cast<long>(kCrowd) - kHandOvers + 1);
  // As many leave at once.
  for (Waiting& waiting : line) waiting.cancel();
  line.clear();
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(rows_become(0)) << server->ask(
      "SELECT role, owner, since, expires_at FROM dlock_locks");
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
  kill_session(session_of("role = 'waiter' ORDER BY since LIMIT 1"));
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
    const pid_t pid = fork_waiter();
    ASSERT_TRUE(waiters_are(place + 1));
    line.emplace_back(client(), patient());
    ASSERT_TRUE(waiters_are(place + 2));
    kill(pid);
    const auto took = time_of([&] {
      while (!line.empty()) {
        EXPECT_TRUE(release(*lease));
        lease = line.front().lease();
        ASSERT_TRUE(lease);
        line.pop_front();
      }
    });
    EXPECT_LT(took, here(Millis{4'000}));
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(waiters_are(0));  // its row is there, and counts no more
    EXPECT_TRUE(sessions_become(1));
  }
}

// Without its session, only its lease tells when it is over.
TEST_P(MysqlWaiting, TheFirstWaiterBehindADeadHolderLooksNowAndThen) {
  auto lease = hold(*a, brief(8'000));
  kill_session(session_of("role = 'holder'"));
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
    kill_session(session_of("role = 'holder'"));
    for (std::size_t i = 0; i < 3; ++i) {
      line.emplace_back(client(), patient_as(mode));
      ASSERT_TRUE(line.back().blocked());
      ASSERT_TRUE(waiters_are(i + 1));
    }
    std::this_thread::sleep_for(Millis{2'000});  // at first, a holder may be connecting again
    const auto broken = b->force_release("job", lease->owner_id(), {"a test"}, soon());
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

// The server ends the session of one that was woken and says nothing.
TEST_P(MysqlWaiting, AWaiterProcessThatIsStoppedHoldsNobodyUp) {
  make_tables();
  auto lease = hold(*a, patient());
  const pid_t first = fork_waiter();
  ASSERT_TRUE(waiters_are(1));
  const pid_t second = fork_waiter();
  ASSERT_TRUE(waiters_are(2));
  for (const pid_t pid : {first, second}) {
    ::kill(pid, SIGSTOP);
    ::waitpid(pid, nullptr, WUNTRACED);
  }
  Waiting next(client(), patient());
  ASSERT_TRUE(waiters_are(3));
  EXPECT_TRUE(release(*lease));
  EXPECT_LT(time_of([&] { lease = next.lease(); }), Millis{7'000} + here(Millis{2'000}));
  EXPECT_TRUE(lease && release(*lease));
  for (const pid_t pid : {first, second}) kill(pid);
}

// For longer than it takes until waiters look beside the gate, twice.
TEST_P(MysqlWaiting, ReadersDoNotPassAWriterThatWaits) {
  auto lease = hold(*a, patient_as(Mode::shared));
  Waiting writer(client(), patient());
  ASSERT_TRUE(waiters_are(1));
  Waiting reader(client(), patient_as(Mode::shared));
  ASSERT_TRUE(waiters_are(2));
  EXPECT_FALSE(reader.done(17'000));
  EXPECT_TRUE(release(*lease));
  lease = writer.lease();
  ASSERT_TRUE(lease);
  EXPECT_FALSE(reader.done(0));
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(release(*reader.lease()));
}

TEST_P(MysqlWaiting, AHolderWhoseGrantWasConfirmedKeepsNobodyAtTheGate) {
  make_tables();
  EXPECT_TRUE(is_free_for(*a, patient()));
  proxy->lose_reply_to("START TRANSACTION");
  auto lease = readable_through_proxy()->acquire(patient_as(Mode::shared), {.until = soon()});
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_EQ(proxy->lost_replies(), 1);
  auto other = try_once(*b, patient_as(Mode::shared));
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_TRUE(release(**other));
  EXPECT_TRUE(release(**lease));
}

// They stand in the queue for a moment, although each of them is let in.
TEST_P(MysqlWaiting, ReadersThatWaitDoNotKeepOneOutThatDoesNotWait) {
  make_tables();
  auto lease = hold(*a, patient_as(Mode::shared));
  const auto its = database();
  const sql::Statements say(*its, "job");
  const Request reader = patient_as(Mode::shared);
  const auto session = session_at(place());  // has the gate and a row
  ASSERT_TRUE(session->ask(say.look(reader.owner.id, Millis{0}), soon(), Cancel()).ok());
  ASSERT_TRUE(session->ask(say.join(reader), soon(), Cancel()).ok());
  auto other =
      std::async(std::launch::async, [&] { return try_once(*client(), patient_as(Mode::shared)); });
  EXPECT_TRUE(processes_become(1, "state = 'User lock'"));
  session->close();
  auto got = other.get();
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(release(**got));
  EXPECT_TRUE(release(*lease));
}

// As when its name leads to another server, and nothing breaks the connection.
TEST_P(MysqlWaiting, AWaiterWhoseSessionIsNotThereBeginsAnew) {
  make_tables();
  auto lease = hold(*a, patient());
  Waiting first(client(), patient());
  ASSERT_TRUE(waiters_are(1));
  Waiting waiting(through_proxy(), patient());
  ASSERT_TRUE(waiters_are(2));
  const std::string session = session_of("role = 'waiter' ORDER BY since DESC LIMIT 1");
  proxy->drop();
  kill_session(session);
  ASSERT_TRUE(waiters_are(1));
  proxy->pass();  // to new connections
  EXPECT_TRUE(waiters_are(2));
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(release(*first.lease()));
  EXPECT_TRUE(release(*waiting.lease()));
}

}  // namespace
}  // namespace dlock::test
