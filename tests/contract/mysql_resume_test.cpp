// Leases that were let go: no session is left, and processes that did not acquire them renew and
// release them.  These tests check what the server keeps, and which waiter wakes up when.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <thread>

#include "core/lock_record.hpp"
#include "mysql_fixture.hpp"

namespace dlock::test {
namespace {

// The first waiter looks at least once a second.
constexpr Millis kAtOnce{2'000};
constexpr Millis kTenMinutes{600'000};

class MysqlResume : public MysqlTest {
 protected:
  void SetUp() override {
    MysqlTest::SetUp();
    if (!IsSkipped()) make_tables();
  }

  static Request fixed(Mode mode = Mode::exclusive, unsigned slots = 1, Millis ttl = kTenMinutes) {
    Request out = request("job", mode, slots, ttl);
    out.owner.pid = 0;
    out.owner.kind = Owner::Kind::acquire;
    out.owner.lease = ttl;
    return out;
  }
  /// No session is left of it.
  std::string let_go(const Request& wanted = fixed()) const {
    auto lease = hold(*client(), wanted);
    if (!lease) return "";
    const std::string id = lease->owner_id();
    lease.reset();
    EXPECT_TRUE(eventually([&] { return mark_of(id) == "NULL"; }));
    return id;
  }
  std::string mark_of(const std::string& id) const {
    return server->ask("SELECT IS_USED_LOCK('dlock." + id + "')");
  }
  static std::unique_ptr<Lease> pick_up(Backend& backend, const std::string& id,
                                        Millis ttl = kTenMinutes) {
    const LockInfo lock = inspect(backend, "job");
    for (const LockInfo::Holder& holder : lock.holders) {
      if (holder.owner.id != id) continue;
      auto lease = backend.resume(lock, holder, ttl, soon());
      if (lease) return std::move(*lease);
      ADD_FAILURE() << lease.error().message;
      return nullptr;
    }
    ADD_FAILURE() << "is not shown";
    return nullptr;
  }
  /// As by a process of its own.
  void give_back(const std::string& id) const {
    const auto backend = client();
    const auto lease = pick_up(*backend, id);
    EXPECT_TRUE(lease && release(*lease));
  }
  void queue_up(std::size_t count, Mode mode = Mode::exclusive, unsigned slots = 1) {
    for (std::size_t i = 0; i < count; ++i) {
      line.emplace_back(client(), request("job", mode, slots));
      ASSERT_TRUE(line.back().blocked());
      ASSERT_TRUE(waiters_are(line.size()));
    }
  }
  std::unique_ptr<Lease> next_at_once() {
    std::unique_ptr<Lease> lease;
    EXPECT_LT(time_of([&] { lease = line.front().lease(); }), here(kAtOnce));
    line.pop_front();
    return lease;
  }

  std::list<Waiting> line;
};

INSTANTIATE_TEST_SUITE_P(Methods, MysqlResume, testing::Values("table", "version"), mysql_name);

TEST_P(MysqlResume, AReleaseLetsWritersInOneByOneInTheirOrder) {
  const std::string id = let_go();
  ASSERT_NO_FATAL_FAILURE(queue_up(4));
  give_back(id);
  while (!line.empty()) {
    auto lease = next_at_once();
    ASSERT_TRUE(lease);
    for (Waiting& waiting : line) EXPECT_FALSE(waiting.done(0)) << "an OVERLAP";
    EXPECT_TRUE(release(*lease));
  }
  EXPECT_TRUE(rows_become(0));
}

// The first of them sees the release, and wakes the others.
TEST_P(MysqlResume, AReleaseLetsAllReadersIn) {
  const std::string id = let_go();
  ASSERT_NO_FATAL_FAILURE(queue_up(6, Mode::shared));
  give_back(id);
  std::list<std::unique_ptr<Lease>> leases;
  while (!line.empty()) leases.push_back(next_at_once());
  for (auto& lease : leases) EXPECT_TRUE(lease && release(*lease));
  EXPECT_TRUE(rows_become(0));
}

TEST_P(MysqlResume, TheReadersAreLetInIfTheFirstOfThemGivesUp) {
  const std::string id = let_go();
  ASSERT_NO_FATAL_FAILURE(queue_up(3, Mode::shared));
  line.front().cancel();
  EXPECT_EQ(code_of(line.front().result()), Errc::cancelled);
  line.pop_front();
  give_back(id);
  std::list<std::unique_ptr<Lease>> leases;
  while (!line.empty()) leases.push_back(next_at_once());
  for (auto& lease : leases) EXPECT_TRUE(lease && release(*lease));
}

TEST_P(MysqlResume, TheLastOfSeveralReadersThatAreReleasedLetsAWriterIn) {
  const std::vector<std::string> ids{let_go(fixed(Mode::shared)), let_go(fixed(Mode::shared)),
                                     let_go(fixed(Mode::shared))};
  ASSERT_NO_FATAL_FAILURE(queue_up(1));
  for (const std::size_t i : {1U, 0U}) {
    give_back(ids[i]);
    EXPECT_FALSE(line.front().done(300)) << "an OVERLAP";
  }
  give_back(ids[2]);
  auto lease = next_at_once();
  EXPECT_TRUE(lease && release(*lease));
}

// The writer waits for the mark of the holder that has one, and then for the other holder.
TEST_P(MysqlResume, AWriterOutwaitsAReaderThatWasLetGoAndOneThatIsThere) {
  for (const bool let_go_first : {true, false}) {
    const std::string id = let_go(fixed(Mode::shared));
    auto lease = hold(*a, shared("job"));
    Waiting waiting(client(), request("job"));
    ASSERT_TRUE(waiting.blocked());
    ASSERT_TRUE(waiters_are(1));
    if (let_go_first) {
      give_back(id);
      EXPECT_FALSE(waiting.done(300)) << "an OVERLAP";
      EXPECT_TRUE(release(*lease));
    } else {
      EXPECT_TRUE(release(*lease));
      EXPECT_FALSE(waiting.done(300)) << "an OVERLAP";
      give_back(id);
    }
    EXPECT_LT(time_of([&] { lease = waiting.lease(); }), here(kAtOnce));
    EXPECT_TRUE(lease && release(*lease));
  }
}

TEST_P(MysqlResume, ASlotThatIsReleasedIsTheNextOnes) {
  const std::vector<std::string> ids{let_go(fixed(Mode::slots, 2)), let_go(fixed(Mode::slots, 2))};
  ASSERT_NO_FATAL_FAILURE(queue_up(2, Mode::slots, 2));
  give_back(ids[1]);
  auto first = next_at_once();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->slot(), 2u);
  EXPECT_FALSE(line.front().done(300));
  give_back(ids[0]);
  auto second = next_at_once();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->slot(), 1u);
  EXPECT_TRUE(release(*first));
  EXPECT_TRUE(release(*second));
}

TEST_P(MysqlResume, AForceReleaseIsSeenSoon) {
  for (const Mode mode : {Mode::exclusive, Mode::shared}) {
    const std::string id = let_go();
    ASSERT_NO_FATAL_FAILURE(queue_up(2, mode));
    const auto broken = b->force_release("job", id, {"root on ops (pid 1)"}, soon());
    EXPECT_TRUE(broken && broken.value());
    auto first = next_at_once();
    ASSERT_TRUE(first);
    if (mode == Mode::exclusive) {
      EXPECT_TRUE(release(*first));
    }
    auto second = next_at_once();
    EXPECT_TRUE(second && release(*second));
    if (mode == Mode::shared) {
      EXPECT_TRUE(release(*first));
    }
  }
}

TEST_P(MysqlResume, ItsHolderIsToldWhoHasBrokenIt) {
  const auto lease = pick_up(*a, let_go());
  ASSERT_TRUE(lease);
  const auto broken = b->force_release("job", lease->owner_id(), {"root on ops (pid 1)"}, soon());
  EXPECT_TRUE(broken && broken.value());
  const Error error = error_of(renew(*lease));
  EXPECT_EQ(error.code, Errc::lost);
  EXPECT_TRUE(says(error, "root on ops (pid 1)")) << error.message;
}

TEST_P(MysqlResume, WhatIsGoneBeforeItIsResumedIsLost) {
  const std::string id = let_go();
  const LockInfo lock = inspect(*a, "job");
  ASSERT_EQ(lock.holders.size(), 1u);
  give_back(id);
  const auto lease = a->resume(lock, lock.holders.front(), kTenMinutes, soon());
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_EQ(code_of(renew(*lease.value())), Errc::lost);
  EXPECT_EQ(code_of(release(*lease.value())), Errc::lost);
}

// A text that takes the lock has some twenty statements.
TEST_P(MysqlResume, WaitersButTheFirstAskNothingUntilItIsReleased) {
  const std::string id = let_go();
  ASSERT_NO_FATAL_FAILURE(queue_up(5));
  std::this_thread::sleep_for(Millis{300});
  const long from = status("Questions");
  std::this_thread::sleep_for(Millis{3'000});  // in which the first one looks several times
  EXPECT_LT(status("Questions") - from, 250);
  give_back(id);
  while (!line.empty()) {
    auto lease = next_at_once();
    EXPECT_TRUE(lease && release(*lease));
  }
}

TEST_P(MysqlResume, ItEndsWhenItsLeaseDoesAndNotEarlier) {
  for (const Mode mode : {Mode::exclusive, Mode::shared}) {
    const Deadline begun = Clock::now();
    (void)let_go(fixed(mode, 1, Millis{4'000}));
    const auto wanted = mode == Mode::exclusive ? Mode::shared : Mode::exclusive;
    ASSERT_NO_FATAL_FAILURE(queue_up(2, wanted));
    auto lease = line.front().lease();
    const auto took = Clock::now() - begun;
    EXPECT_GE(took, Millis{4'000});
    EXPECT_LT(took, Millis{4'000} + here(Millis{1'000}));
    EXPECT_TRUE(lease && release(*lease));
    lease = line.back().lease();
    EXPECT_TRUE(lease && release(*lease));
    line.clear();
  }
}

// Its connection ends, and it had no marks: the waiter only looks, and sleeps on.
TEST_P(MysqlResume, AProcessThatHasRenewedItLeavesNothing) {
  const std::string id = let_go();
  ASSERT_NO_FATAL_FAILURE(queue_up(2));
  ASSERT_TRUE(sessions_become(3));  // two waiters, and b
  for (int i = 0; i < 3; ++i) {
    const auto backend = client();
    auto lease = pick_up(*backend, id);
    ASSERT_TRUE(lease && renew(*lease));
    EXPECT_EQ(mark_of(id), "NULL");
    lease.reset();
    for (Waiting& waiting : line) EXPECT_FALSE(waiting.done(200)) << "an OVERLAP";
  }
  EXPECT_TRUE(sessions_become(3));
  EXPECT_EQ(rows(), 3);
  give_back(id);
  while (!line.empty()) {
    auto lease = next_at_once();
    EXPECT_TRUE(lease && release(*lease));
  }
  EXPECT_TRUE(rows_become(0));
}

TEST_P(MysqlResume, AWaiterIsToldOfALeaseThatIsMadeShorter) {
  for (const Request& wanted : {fixed(), fixed(Mode::slots, 1)}) {
    const std::string id = let_go(wanted);
    ASSERT_NO_FATAL_FAILURE(queue_up(1, wanted.mode, wanted.slots));
    const auto lease = pick_up(*a, id, Millis{1'000});
    const auto took = time_of([&] {
      ASSERT_TRUE(lease && renew(*lease));
      EXPECT_TRUE(release(*line.front().lease()));
    });
    EXPECT_GE(took, Millis{1'000});
    EXPECT_LT(took, Millis{1'000} + here(kAtOnce));
    line.clear();
    EXPECT_EQ(code_of(release(*lease)), Errc::lost);
  }
}

// On a cluster, waiters go by the ttl in the record.
TEST_P(MysqlResume, ARenewalWritesItsTtlIntoTheRecordAndNothingElse) {
  Request wanted = fixed();
  wanted.owner.command = "./x\n\"q\" \xC3\xA4";
  wanted.owner.label = "a label";
  const std::string id = let_go(wanted);
  const auto record = [&] {
    const auto reply = session_at(place())->ask("SELECT record FROM dlock_locks", soon(), Cancel());
    return parse_lock_record(reply.answers.at(0).rows.at(0).at(0).value_or(""));
  };
  const auto before = record();
  const auto lease = pick_up(*a, id, Millis{77'000});
  ASSERT_TRUE(lease && renew(*lease));
  const auto now = record();
  ASSERT_TRUE(before && now);
  EXPECT_EQ(before->ttl, kTenMinutes);
  EXPECT_EQ(now->ttl, Millis{77'000});
  EXPECT_EQ(now->owner.id, id);
  EXPECT_EQ(now->owner.host, before->owner.host);
  EXPECT_EQ(now->owner.user, before->owner.user);
  EXPECT_EQ(now->owner.pid, 0);
  EXPECT_EQ(now->owner.command, wanted.owner.command);
  EXPECT_EQ(now->owner.label, wanted.owner.label);
  EXPECT_EQ(now->owner.kind, Owner::Kind::acquire);
  EXPECT_EQ(now->owner.lease, kTenMinutes);
  EXPECT_TRUE(release(*lease));
}

TEST_P(MysqlResume, TwoThatRenewItAtOnceDoNotDisturbEachOther) {
  const std::string id = let_go();
  std::list<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto backend = client();
      const auto lease = pick_up(*backend, id);
      for (int k = 0; lease && k < 10; ++k) EXPECT_TRUE(renew(*lease));
    });
  }
  for (auto& thread : threads) thread.join();
  give_back(id);
}

// Whichever comes first: afterwards the next holder has the lock, and keeps it.
TEST_P(MysqlResume, OfTwoThatReleaseAndRenewItAtOnceTheReleaseWins) {
  for (int i = 0; i < 10; ++i) {
    const std::string id = let_go();
    const auto one = pick_up(*client(), id), two = pick_up(*client(), id);
    ASSERT_TRUE(one && two);
    Waiting waiting(client(), request("job"));
    ASSERT_TRUE(waiting.blocked());
    std::thread renewing([&] {
      for (Result<void> renewed; renewed; renewed = renew(*two)) {
      }
    });
    EXPECT_TRUE(release(*one));
    renewing.join();
    EXPECT_EQ(code_of(release(*two)), Errc::lost);
    const auto lease = waiting.lease();
    ASSERT_TRUE(lease);
    EXPECT_TRUE(renew(*lease));
    EXPECT_TRUE(release(*lease));
  }
}

TEST_P(MysqlResume, OfTwoThatReleaseItAtOnceOneIsToldThatItIsLost) {
  for (int i = 0; i < 10; ++i) {
    const std::string id = let_go();
    const auto one = pick_up(*client(), id), two = pick_up(*client(), id);
    ASSERT_TRUE(one && two);
    Result<void> other = Error{};
    std::thread releasing([&] { other = release(*two); });
    const auto released = release(*one);
    releasing.join();
    EXPECT_NE(released.has_value(), other.has_value());
    EXPECT_EQ(code_of(released ? other : released), Errc::lost);
  }
}

// The first try removes the row, and only the second one wakes the waiter.
TEST_P(MysqlResume, AReleaseWhoseReplyIsLostIsRepeated) {
  for (const Request& wanted : {fixed(), fixed(Mode::shared), fixed(Mode::slots, 1)}) {
    const std::string id = let_go(wanted);
    ASSERT_NO_FATAL_FAILURE(
        queue_up(1, wanted.mode == Mode::slots ? Mode::slots : Mode::exclusive));
    const auto lease = pick_up(*readable_through_proxy(), id);
    ASSERT_TRUE(lease);
    proxy->lose_reply_to("DELETE FROM dlock_locks");
    EXPECT_TRUE(release(*lease));
    EXPECT_EQ(proxy->lost_replies(), 1);
    auto next = next_at_once();
    EXPECT_TRUE(next && release(*next));
    proxy.emplace("127.0.0.1", server->port());
  }
}

TEST_P(MysqlResume, ARenewalWhoseReplyIsLostIsRepeated) {
  const std::string id = let_go();
  const auto lease = pick_up(*readable_through_proxy(), id);
  ASSERT_TRUE(lease);
  proxy->lose_reply_to("UPDATE dlock_locks");
  EXPECT_TRUE(renew(*lease));
  EXPECT_EQ(proxy->lost_replies(), 1);
  EXPECT_EQ(mark_of(id), "NULL");
  EXPECT_TRUE(release(*lease));
}

// The first text may be carried out after the second one.
TEST_P(MysqlResume, AReleaseThatAStoppedServerDoesNotAnswerCanBeSaidAgain) {
  for (const bool renewing : {false, true}) {
    const auto lease = pick_up(*a, let_go());
    ASSERT_TRUE(lease);
    server->pause();
    if (renewing) {
      EXPECT_EQ(code_of(lease->renew(in(200), Cancel())), Errc::unreachable);
    }
    EXPECT_EQ(code_of(lease->release(in(300), Cancel())), Errc::unreachable);
    server->resume();
    const auto again = release(*lease);
    EXPECT_TRUE(again) << again.error().message;
    EXPECT_TRUE(rows_become(0));
    EXPECT_TRUE(is_free_for(*b, request("job")));
    a = client();
  }
}

// MySQL refuses such a name of a mark.
TEST_P(MysqlResume, AnOwnerThatMakesNoNameOfAMarkIsReleased) {
  (void)let_go();
  const std::string owner(64, 'x');
  server->ask("UPDATE dlock_locks SET owner = '" + owner + "'");
  const auto lease = pick_up(*a, owner);
  EXPECT_TRUE(lease && renew(*lease) && release(*lease));
  EXPECT_TRUE(rows_become(0));
}

TEST_P(MysqlResume, ARestartOfTheServerDoesNotEndIt) {
  const std::string id = let_go();
  Waiting waiting(client(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  server->kill();
  server->start_again();
  EXPECT_TRUE(waiters_are(1));
  EXPECT_FALSE(waiting.done(500)) << "an OVERLAP";
  const auto lease = pick_up(*a, id);
  EXPECT_TRUE(lease && renew(*lease) && release(*lease));
  const auto next = waiting.lease();
  EXPECT_TRUE(next && release(*next));
}

// Rows that nobody uses are removed after a week.
TEST_P(MysqlResume, ALongOneIsNotForgotten) {
  const std::string id = let_go();
  server->ask(
      "UPDATE dlock_locks SET since = since - INTERVAL 30 DAY; UPDATE dlock_keys SET "
      "version = 1");
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(is_free_for(*b, request("other")));
  EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
  give_back(id);
}

// A process that may not end the session of a waiter does not wake it, but the waiter looks.
TEST_P(MysqlResume, AWaiterOfAnotherUserIsNotKeptWaitingForLong) {
  server->ask("CREATE USER other@'%'; GRANT ALL ON test.* TO other@'%'");
  const std::string id = let_go();
  line.emplace_back(client_of("other"), request("job"));
  ASSERT_TRUE(line.back().blocked());
  give_back(id);
  const auto next = line.front().lease();
  EXPECT_TRUE(next && release(*next));
}

TEST_P(MysqlResume, AWaiterOnAFullServerIsNotKeptWaitingForLong) {
  start({.settings = {"max_connections=10"}});
  make_tables();
  const std::string id = let_go();
  a = client();
  inspect(*a, "job");  // and has a connection
  std::vector<std::unique_ptr<mysql::Connection>> others;
  for (auto other = mysql::Connection::open(place(), soon(), Cancel()); other;
       other = mysql::Connection::open(place(), soon(), Cancel())) {
    others.push_back(std::move(*other));
  }
  others.pop_back();  // for the waiter
  Waiting waiting(client(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  EXPECT_TRUE(eventually([&] { return inspect(*a, "job").waiters->size() == 1; }));
  const auto lease = pick_up(*a, id);
  EXPECT_TRUE(lease && release(*lease));
  const auto next = waiting.lease();
  EXPECT_TRUE(next && release(*next));
}

}  // namespace
}  // namespace dlock::test
