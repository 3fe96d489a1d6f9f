// Who gets the lock next, and when the dead are in the way.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <random>
#include <thread>

#include "redis_fixture.hpp"

namespace dlock::test {
namespace {

class RedisWaiting : public RedisTest {
 protected:
  /// One after another, so that their order is known.
  std::vector<std::unique_ptr<Waiting>> queue(int count, const Request& like) {
    std::vector<std::unique_ptr<Waiting>> out;
    const std::size_t before = inspect(*b, like.key).waiters->size();
    for (int i = 0; i < count; ++i) {
      out.push_back(
          std::make_unique<Waiting>(client(), request(like.key, like.mode, like.slots, like.ttl)));
      EXPECT_TRUE(waiters_are(before + out.size(), like.key));
    }
    return out;
  }
  /// How often the server has carried it out, in scripts too.
  std::size_t calls_of(const std::string& command) const {
    const std::string text = server->command("INFO", "commandstats");
    const std::string mark = "cmdstat_" + command + ":calls=";
    const auto at = text.find(mark);
    return at == std::string::npos ? 0 : std::stoul(text.substr(at + mark.size()));
  }
};

// --- cost

TEST_F(RedisWaiting, AnArrivalCostsTheSameHoweverManyShareTheLock) {
  const auto bytes_sent = [&] {
    const std::string text = server->command("INFO", "stats");
    const std::string mark = "total_net_output_bytes:";
    return std::stol(text.substr(text.find(mark) + mark.size()));
  };
  for (const Mode mode : {Mode::shared, Mode::slots}) {
    std::vector<std::unique_ptr<Lease>> leases;
    const auto arrival = [&] {
      LockInfo seen;
      const Wait once{.until = Deadline{},
                      .on_blocked = [&](const LockInfo& info) { seen = info; }};
      const long before = bytes_sent();
      const Request wanted = mode == Mode::slots ? slots("job", 300) : request("job");
      EXPECT_EQ(code_of(b->acquire(wanted, once)), Errc::busy);
      const long after = bytes_sent();
      EXPECT_EQ(seen.holders.size(), 1u);
      EXPECT_EQ(seen.holder_count, leases.size());
      return after - before;
    };
    const unsigned most = mode == Mode::slots ? 300 : 3;
    const auto fill = [&](unsigned count) {
      while (leases.size() < count) leases.push_back(hold(*a, request("job", mode, most)));
    };
    if (mode == Mode::shared) {
      fill(3);
      const long with_few = arrival();
      fill(300);
      EXPECT_LT(arrival(), with_few + 500);
    } else {
      fill(300);
      EXPECT_LT(arrival(), 10'000);  // one holder has 100 bytes and more
    }
    for (auto& lease : leases) EXPECT_TRUE(release(*lease));
  }
}

// --- order

TEST_F(RedisWaiting, WaitersAreServedInTheOrderInWhichTheyCame) {
  auto lease = hold(*a, request("job"));
  auto waiting = queue(20, request("job"));
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (i % 5 == 3) continue;  // cancelled below
    if (i % 5 == 2 && i + 1 < waiting.size()) {
      waiting[i + 1]->cancel();
      EXPECT_EQ(code_of(waiting[i + 1]->result()), Errc::cancelled);
    }
    EXPECT_TRUE(release(*lease));
    lease = waiting[i]->lease();
    ASSERT_TRUE(lease) << i;
  }
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(only_the_counter_is_left());
}

TEST_F(RedisWaiting, WhoeverComesLaterDoesNotOvertake) {
  auto lease = hold(*a, request("job"));
  auto waiting = queue(1, request("job"));
  std::atomic<bool> stop = false;
  std::atomic<int> rounds = 0;
  std::thread greedy([&, other = client()] {
    while (!stop) {
      auto mine = other->acquire(request("job"), {.until = in(20)});
      if (mine) {
        EXPECT_TRUE(release(**mine));
      }
      ++rounds;
    }
  });
  EXPECT_TRUE(eventually([&] { return rounds > 3; }));
  EXPECT_TRUE(release(*lease));
  EXPECT_LT(time_of([&] { lease = waiting[0]->lease(); }), here(Millis{2'000}));
  stop = true;
  greedy.join();
}

TEST_F(RedisWaiting, AWaiterWhoseConnectionsAreDeadIsPassedOverAtOnce) {
  Proxy proxy("127.0.0.1", server->port());
  auto lease = hold(*a, request("job"));
  Waiting cut_off(connect_redis(proxy.port()), request("job"));
  ASSERT_TRUE(waiters_are(1));
  auto waiting = queue(1, request("job"));
  proxy.refuse();
  proxy.cut();
  ASSERT_TRUE(waiters_are(1));
  EXPECT_TRUE(release(*lease));
  const auto took = time_of([&] { EXPECT_TRUE(waiting[0]->lease()); });
  EXPECT_LT(took, Millis{400});
  RecordProperty("ms", static_cast<int>(took.count()));
}

TEST_F(RedisWaiting, AWaiterThatIsCalledAndDoesNotComeHoldsTheOthersUpForASecondAtMost) {
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 1)}) {
    auto lease = hold(*a, wanted.mode == Mode::slots ? wanted : request("job"));
    Sleeper sleeper(*server, "job", std::string(1, "xsn"[static_cast<int>(wanted.mode)]));
    auto waiting = queue(2, wanted);
    EXPECT_TRUE(release(*lease));
    sleeper.wait_for_call();
    const auto took = time_of([&] { lease = waiting[0]->lease(); });
    EXPECT_LT(took, here(Millis{1'800})) << mode_name(wanted.mode);
    ASSERT_TRUE(lease);
    EXPECT_TRUE(release(*lease));
    const auto next = time_of([&] { lease = waiting[1]->lease(); });
    EXPECT_LT(next, Millis{400}) << mode_name(wanted.mode);
    EXPECT_TRUE(release(*lease));
    server->command("DEL", redis::names_of("dlock:", "job").waiter + waiter_id(0));
    EXPECT_TRUE(only_the_counter_is_left());
  }
}

// Stopped, or on a machine that has vanished: their sockets look open.
TEST_F(RedisWaiting, HoweverManyDoNotComeTheLivingOneBehindThemIsServed) {
  for (const auto& [wanted, count] : {std::pair{request("job"), 40}, {slots("job", 1), 5}}) {
    auto lease = hold(*a, wanted);
    std::deque<Sleeper> sleepers;
    const std::string letter(1, wanted.mode == Mode::slots ? 'n' : 'x');
    for (int i = 0; i < count; ++i) {
      sleepers.emplace_back(*server, "job", letter, "5000", waiter_id(i));
    }
    auto waiting = queue(1, wanted);
    EXPECT_TRUE(release(*lease));
    const auto took = time_of([&] { lease = waiting[0]->lease(); });
    EXPECT_LT(took, here(Millis{8'000})) << mode_name(wanted.mode) << ' ' << count;
    ASSERT_TRUE(lease);
    EXPECT_TRUE(release(*lease));
    server->command("FLUSHALL");
  }
}

// It is alive who keeps its record and listens: in the same way whoever asks.
TEST_F(RedisWaiting, WhoseRecordHasRunOutIsPassedOverAtOnce) {
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 1)}) {
    auto lease = hold(*a, wanted.mode == Mode::slots ? wanted : request("job"));
    std::deque<Sleeper> sleepers;
    const std::string letter(1, "xsn"[static_cast<int>(wanted.mode)]);
    for (int i = 0; i < 5; ++i) {
      sleepers.emplace_back(*server, "job", letter, "1", waiter_id(i));
    }
    ASSERT_TRUE(waiters_are(0));
    auto waiting = queue(2, wanted);
    EXPECT_TRUE(release(*lease));
    const auto took = time_of([&] { lease = waiting[0]->lease(); });
    EXPECT_LT(took, Millis{400}) << mode_name(wanted.mode);
    ASSERT_TRUE(lease);
    EXPECT_TRUE(release(*lease));
    lease = waiting[1]->lease();
    ASSERT_TRUE(lease);
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(only_the_counter_is_left());
  }
}

// To say how many wait, their records need not be read.
TEST_F(RedisWaiting, AnArrivalCostsTheSameHoweverManyWait) {
  auto lease = hold(*a, request("job"));
  const auto names = redis::names_of("dlock:", "job");
  const auto gets_of_an_arrival = [&] {
    const std::size_t before = calls_of("get");
    Waiting waiting(client(), request("job"), in(60'000));
    EXPECT_TRUE(waiting.blocked());
    EXPECT_TRUE(eventually([&] { return server->command("EXISTS", names.queue) == "1"; }));
    waiting.cancel();
    EXPECT_EQ(code_of(waiting.result()), Errc::cancelled);
    return calls_of("get") - before;
  };
  const std::size_t alone = gets_of_an_arrival();
  for (int i = 0; i < 300; ++i) {
    const std::string id = waiter_id(i);
    std::string record = waiter_record(id);
    record.replace(record.size() - 1, 1, ",\"polls\":1}");
    server->command("SET", names.waiter + id, record, "PX", "60000");
    server->command("ZADD", names.queue, "1", "x:" + id);
  }
  EXPECT_LE(gets_of_an_arrival(), alone + 5);
  EXPECT_TRUE(release(*lease));
}

TEST_F(RedisWaiting, AKeyThatIsOnlyWaitedForIsListed) {
  for (const std::string key : {"job", "a{tag}b"}) {
    const Sleeper sleeper(*server, key, "x");
    const auto locks = b->list("", soon());
    ASSERT_TRUE(locks);
    ASSERT_EQ(locks.value().size(), 1u) << key;
    EXPECT_EQ(locks.value()[0].key, key);
    EXPECT_TRUE(locks.value()[0].holders.empty());
    EXPECT_EQ(locks.value()[0].waiters->size(), 1u);
    EXPECT_TRUE(b->list("other", soon()).value().empty());
    server->command("FLUSHALL");
  }
}

TEST_F(RedisWaiting, WhoeverComesWhileSomebodyIsCalledWaitsForASecondAtMost) {
  Sleeper sleeper(*server, "job", "x");
  std::unique_ptr<Lease> lease;
  EXPECT_LT(time_of([&] { lease = hold(*a, request("job")); }), here(Millis{1'800}));
  EXPECT_TRUE(release(*lease));
}

// For a second at most, since the waiter that is next is offered the lock once.
TEST_F(RedisWaiting, ATryIsBusyOnlyWhileAWaiterIsServed) {
  const Sleeper one(*server, "job", "x");
  const Sleeper two(*server, "other", "s");
  EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
  EXPECT_EQ(code_of(try_once(*a, shared("job"))), Errc::busy);
  EXPECT_EQ(code_of(try_once(*a, request("other"))), Errc::busy);
  const auto took = time_of([&] {
    EXPECT_TRUE(eventually([&] { return is_free_for(*a, request("job")); }));
    EXPECT_TRUE(eventually([&] { return is_free_for(*a, slots("other", 2)); }));
  });
  EXPECT_LT(took, here(Millis{1'800}));
  EXPECT_TRUE(is_free_for(*a, shared("job")));
}

TEST_F(RedisWaiting, ATryToReadIsNotKeptOutForEverByAReaderThatDoesNotCome) {
  auto lease = hold(*a, shared("job"));
  const Sleeper sleeper(*server, "job", "s", "1000");  // what it said of itself runs out
  EXPECT_TRUE(eventually([&] {
    std::this_thread::sleep_for(Millis{100});
    return is_free_for(*b, shared("job"));
  }));
}

// --- readers and writers

TEST_F(RedisWaiting, AStreamOfReadersDoesNotStarveAWriter) {
  std::atomic<bool> stop = false;
  std::atomic<int> reads = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&, mine = client()] {
      while (!stop) {
        auto lease = hold(*mine, shared("job"));
        std::this_thread::sleep_for(Millis{10});  // a job, so that they overlap
        if (lease) {
          EXPECT_TRUE(release(*lease));
        }
        ++reads;
      }
    });
  }
  ASSERT_TRUE(eventually([&] { return reads > 6; }));
  auto writer = hold(*a, request("job"));
  ASSERT_TRUE(writer);
  EXPECT_TRUE(release(*writer));
  const int before = reads;
  EXPECT_TRUE(eventually([&] { return reads > before + 6; }));
  stop = true;
  for (auto& reader : readers) reader.join();
}

TEST_F(RedisWaiting, ReadersBehindAWriterWaitAndThenReadTogether) {
  auto lease = hold(*a, shared("job"));
  auto writer = queue(1, request("job"));
  EXPECT_EQ(code_of(try_once(*b, shared("job"))), Errc::busy);
  auto readers = queue(3, shared("job"));
  EXPECT_TRUE(release(*lease));
  lease = writer[0]->lease();
  ASSERT_TRUE(lease);
  EXPECT_TRUE(release(*lease));
  std::vector<std::unique_ptr<Lease>> leases;
  EXPECT_LT(time_of([&] {
              for (auto& reader : readers) leases.push_back(reader->lease());
            }),
            Millis{400});
  EXPECT_EQ(inspect(*b, "job").holders.size(), 3u);
}

TEST_F(RedisWaiting, AWriterThatGivesUpLetsTheReadersBehindItIn) {
  auto lease = hold(*a, shared("job"));
  auto writer = queue(1, request("job"));
  auto readers = queue(2, shared("job"));
  writer[0]->cancel();
  EXPECT_EQ(code_of(writer[0]->result()), Errc::cancelled);
  EXPECT_LT(time_of([&] {
              for (auto& reader : readers) EXPECT_TRUE(reader->lease());
            }),
            Millis{1'000});
}

TEST_F(RedisWaiting, ADeadReaderLastsItsOwnTtlHoweverLongTheOthersRenew) {
  auto dead = hold(*a, request("job", Mode::shared, 1, Millis{400}));
  auto alive = hold(*a, shared("job"));
  dead.reset();
  ASSERT_TRUE(eventually([&] {
    EXPECT_TRUE(renew(*alive));
    return inspect(*b, "job").holders.size() == 1;
  }));
  auto writer = queue(1, request("job"));
  EXPECT_EQ(server->command("HLEN", redis::names_of("dlock:", "job").owner),
            "3");  // with @mode and the round
  EXPECT_TRUE(release(*alive));
  EXPECT_LT(time_of([&] { EXPECT_TRUE(writer[0]->lease()); }), here(Millis{500}));
}

TEST_F(RedisWaiting, AWriterComesInWhenTheLastLiveReaderHasGoneAndTheDeadOneIsOver) {
  auto alive = hold(*a, shared("job"));
  auto dead = hold(*a, request("job", Mode::shared, 1, Millis{900}));
  const Deadline over = dead->valid_until();
  dead.reset();
  auto writer = queue(1, request("job"));
  EXPECT_TRUE(release(*alive));
  auto lease = writer[0]->lease();
  ASSERT_TRUE(lease);
  EXPECT_GE(Clock::now(), over);
  EXPECT_LT(Clock::now(), over + here(Millis{1'500}));
}

TEST_F(RedisWaiting, SlotsAreNeverOneTooManyAlsoWhenHoldersDie) {
  constexpr unsigned kSlots = 3;
  std::mutex mutex;
  std::vector<Deadline> held;
  std::size_t most = 0;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 6; ++i) {
    threads.emplace_back([&, i, mine = client()] {
      std::minstd_rand random(i + 1);
      for (int round = 0; round < 12; ++round) {
        auto lease = hold(*mine, request("job", Mode::slots, kSlots, Millis{250}));
        if (!lease) return;
        const bool dies = random() % 4 == 0;
        {
          const std::lock_guard lock(mutex);
          std::erase_if(held, [](Deadline until) { return until <= Clock::now(); });
          held.push_back(lease->valid_until());
          most = std::max(most, held.size());
        }
        std::this_thread::yield();
        if (dies) continue;
        {
          const std::lock_guard lock(mutex);
          const auto at = std::find(held.begin(), held.end(), lease->valid_until());
          if (at != held.end()) held.erase(at);
        }
        (void)release(*lease);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LE(most, kSlots);
  EXPECT_TRUE(only_the_counter_is_left());
}

TEST_F(RedisWaiting, ASlotOfADeadHolderGoesToAWaiterWhenItsTtlIsOver) {
  auto alive = hold(*a, slots("job", 2));
  auto dead = hold(*a, request("job", Mode::slots, 2, Millis{500}));
  const Deadline over = dead->valid_until();
  dead.reset();
  auto waiting = queue(2, slots("job", 2));
  auto lease = waiting[0]->lease();
  ASSERT_TRUE(lease);
  EXPECT_GE(Clock::now(), over);
  EXPECT_LT(Clock::now(), over + here(Millis{1'500}));
  EXPECT_FALSE(waiting[1]->done(50));
  EXPECT_TRUE(release(*alive));
  EXPECT_TRUE(waiting[1]->lease());
}

// --- while others go on holding it

TEST_F(RedisWaiting, AWriterThatIsKilledLetsTheReadersBehindItInWhileOthersRead) {
  const Request wanted = request("job", Mode::shared, 1, Millis{2'000});
  auto lease = hold(*a, wanted);
  std::optional<Sleeper> writer(std::in_place, *server, "job", "x");
  auto readers = queue(1, wanted);
  writer.reset();
  EXPECT_TRUE(eventually([&] {
    EXPECT_TRUE(renew(*lease));
    return readers[0]->done(200);
  }));
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(readers[0]->lease());
}

TEST_F(RedisWaiting, ASlotThatIsFreeIsNotLostOnTheLivingOneBehindThoseThatDoNotCome) {
  const Request wanted = request("job", Mode::slots, 2, Millis{4'000});
  auto stays = hold(*a, wanted);
  auto lease = hold(*a, request("job", Mode::slots, 2));
  std::deque<Sleeper> sleepers;
  for (int i = 0; i < 3; ++i) {
    sleepers.emplace_back(*server, "job", "n", "5000", waiter_id(i));
  }
  auto waiting = queue(1, wanted);
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(eventually([&] {
    EXPECT_TRUE(renew(*stays));
    return waiting[0]->done(200);
  }));
  EXPECT_TRUE(release(*stays));
  EXPECT_TRUE(waiting[0]->lease());
}

// It finds out by itself that the reader that was called does not come, and must not take its
// place.
TEST_F(RedisWaiting, AReaderBehindAWriterDoesNotTakeThePlaceOfOneThatDoesNotCome) {
  auto lease = hold(*a, shared("job"));
  const Sleeper called(*server, "job", "s");
  auto writer = queue(1, request("job"));
  Waiting reader(client(), shared("job"));
  ASSERT_TRUE(waiters_are(2));  // that reader was offered the lock, and the offer is over
  ASSERT_FALSE(reader.done(2'500));
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(release(*writer[0]->lease()));
  EXPECT_TRUE(reader.lease());
}

}  // namespace
}  // namespace dlock::test
