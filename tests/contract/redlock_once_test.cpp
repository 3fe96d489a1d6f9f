// What a majority of Redis servers remembers of jobs that are done: minorities, servers that come
// back, and requests that come late.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "redlock_fixture.hpp"

namespace dlock::test {
namespace {

constexpr Millis kWeek{7LL * 24 * 3'600'000};

class RedlockOnce : public RedlockTest {
 protected:
  static constexpr Mask kAll = 0b111;

  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server is not installed";
    start(3);
    put_proxies();
    direct = client();
    teach();
    proxied = through_proxies();
  }
  /// By EVALSHA only, from then on.
  void teach() {
    do_job(*direct, "teach");
    EXPECT_TRUE(direct->forget_mark({"teach", ""}, soon()).value());
    let_finish(*direct);
    flush(kAll);
  }
  static std::string entry(const std::string& key = "job") {
    return redis::entry_of(redis::kDefaultPrefix, {key, ""});
  }
  static Result<void> complete(Lease& lease, Deadline deadline = soon()) {
    return lease.complete({"", kWeek}, deadline, Cancel());
  }
  static void do_job(Backend& backend, const std::string& key = "job", Millis remember = kWeek) {
    const auto lease = hold(backend, request(key));
    ASSERT_TRUE(lease);
    const auto done = lease->complete({"", remember}, soon(), Cancel());
    EXPECT_TRUE(done) << done.error().message;
    let_finish(backend);
  }
  /// Of a client of its own, which these servers do not answer.
  std::optional<Mark> find_without(Mask away) {
    strike(away, Death::stopped);
    auto mark = find(*client());
    heal(away, Death::stopped);
    return mark;
  }
  /// Held by all; the proxied client is silent.
  std::unique_ptr<Lease> begin() {
    auto lease = hold(*proxied, request("job"));
    EXPECT_TRUE(is_held_by(kAll, "job", kAll));
    let_finish(*proxied);
    return lease;
  }
  /// A lease of which only these servers remember that its job is done.
  std::unique_ptr<Lease> complete_on(Mask mask) {
    auto lease = begin();
    strike(kAll & ~mask, Death::cut);
    EXPECT_EQ(code_of(complete(*lease)), Errc::unreachable);
    EXPECT_EQ(having(entry(), kAll), mask);
    return lease;
  }
  std::string said_by_preparing(Deadline deadline) {
    testing::internal::CaptureStderr();
    EXPECT_TRUE(direct->prepare_marks("job", deadline));
    return testing::internal::GetCapturedStderr();
  }
  bool is_named(const std::string& text, unsigned node) const {
    return text.find(':' + std::to_string(servers[node].port())) != std::string::npos;
  }
  /// As after the ttl of a holder that has died.
  void expire() {
    for (const RedisServer& server : servers) server.command("DEL", lock_of("job"));
  }

  std::unique_ptr<Backend> direct;
  std::unique_ptr<Backend> proxied;
};

// --- completing

TEST_F(RedlockOnce, AllServersRememberAndReleaseIt) {
  const auto lease = begin();
  EXPECT_TRUE(complete(*lease));
  let_finish(*proxied);
  EXPECT_EQ(having(entry(), kAll), kAll);
  EXPECT_TRUE(is_held_by(0, "job", kAll));
}

TEST_F(RedlockOnce, AMajorityIsEnough) {
  for (const Death death : {Death::stopped, Death::killed}) {
    const auto lease = begin();
    strike(0b010, death);
    EXPECT_TRUE(complete(*lease));
    EXPECT_TRUE(is_free_for(*direct, request("job")));
    heal(0b010, death);
    EXPECT_TRUE(find_without(0b001));
    EXPECT_TRUE(direct->forget_mark({"job", ""}, soon()).value());
    expire();
  }
}

TEST_F(RedlockOnce, LostRepliesAreFoundOutByTheNextCall) {
  const auto lease = begin();
  for (Proxy& proxy : proxies) proxy.lose_reply_to("}:done:");
  EXPECT_EQ(code_of(complete(*lease)), Errc::unreachable);
  EXPECT_EQ(having(entry(), kAll), kAll);
  EXPECT_TRUE(is_held_by(kAll, "job", kAll));
  EXPECT_TRUE(complete(*lease));
  EXPECT_TRUE(is_held_by(0, "job", kAll));
  const auto mark = find(*direct);
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->owner.id, lease->owner_id());
  EXPECT_EQ(mark->fence, lease->fence());
}

TEST_F(RedlockOnce, AMinorityIsCompletedByTheNextCall) {
  const auto lease = complete_on(0b001);
  heal(0b110, Death::cut);
  EXPECT_TRUE(complete(*lease));
  EXPECT_TRUE(is_held_by(0, "job", kAll));
  EXPECT_TRUE(find_without(0b001));
}

// Else the next holder could be granted the lock by the first server and another one, miss the mark
// of the first, and run the job before the mark comes to a majority.
TEST_F(RedlockOnce, NoServerReleasesTheLockBeforeAMajorityRemembers) {
  const auto lease = complete_on(0b001);
  EXPECT_EQ(having(lock_of("job"), kAll), kAll);
  servers[2].command("DEL", lock_of("job"));
  EXPECT_EQ(code_of(try_once(*direct, request("job"))), Errc::busy);
  heal(0b110, Death::cut);
  EXPECT_TRUE(complete(*lease));
  EXPECT_TRUE(is_free_for(*direct, request("job")));
}

TEST_F(RedlockOnce, WhatIsWrittenAfterTheLeaseIsOverDoesNotCount) {
  Request wanted = request("job");
  wanted.ttl = Millis{1'000};
  const auto lease = hold(*proxied, wanted);
  ASSERT_TRUE(lease);
  ASSERT_TRUE(is_held_by(kAll, "job", kAll));
  // As if the servers' clocks were slow.
  for (const RedisServer& server : servers) server.command("PERSIST", lock_of("job"));
  ASSERT_TRUE(eventually([&] { return Clock::now() > lease->valid_until(); }));
  EXPECT_EQ(code_of(complete(*lease)), Errc::unreachable);
}

// --- who has lost the lock

TEST_F(RedlockOnce, ALockThatIsLostIsSaidToBeLostIfNobodyRemembers) {
  const auto lease = begin();
  strike(0b100, Death::cut);  // and so it was not asked
  EXPECT_TRUE(direct->force_release("job", lease->owner_id(), "root: a test", soon()).value());
  const auto done = complete(*lease);
  EXPECT_EQ(code_of(done), Errc::lost) << done.error().message;
  EXPECT_NE(done.error().message.find("root: a test"), std::string::npos) << done.error().message;
  EXPECT_EQ(having(entry(), kAll), 0U);
}

TEST_F(RedlockOnce, ALockThatIsLostIsNotSaidToBeLostIfSomebodyMayRemember) {
  const auto lease = complete_on(0b001);
  heal(0b110, Death::cut);
  EXPECT_TRUE(direct->force_release("job", lease->owner_id(), "test", soon()).value());
  EXPECT_EQ(code_of(complete(*lease)), Errc::unreachable);
  EXPECT_TRUE(find_without(0b010));
}

TEST_F(RedlockOnce, ASilentServerMayRemember) {
  const auto lease = begin();
  EXPECT_TRUE(direct->force_release("job", lease->owner_id(), "test", soon()).value());
  strike(0b100, Death::stopped);
  EXPECT_EQ(code_of(complete(*lease)), Errc::unreachable);
  heal(0b100, Death::stopped);
  EXPECT_EQ(code_of(complete(*lease)), Errc::lost);
  EXPECT_EQ(having(entry(), kAll), 0U);
}

// --- reading

TEST_F(RedlockOnce, WhatOneHasSeenAllSee) {
  (void)complete_on(0b001);
  const auto seen = find_without(0b010);
  ASSERT_TRUE(seen);
  EXPECT_TRUE(having(entry(), kAll) & 0b100);
  const auto again = find_without(0b001);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->owner.id, seen->owner.id);
  EXPECT_LE(again->left, seen->left);
}

TEST_F(RedlockOnce, WhatCannotBeWrittenToAMajorityIsNotTold) {
  (void)complete_on(0b001);
  strike(0b100, Death::killed);
  servers[1].command("CONFIG", "SET", "maxmemory", "1");
  const auto found = direct->find_mark({"job", ""}, soon());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::unreachable) << found.error().message;
  servers[1].command("CONFIG", "SET", "maxmemory", "0");
  EXPECT_TRUE(find(*direct));
}

TEST_F(RedlockOnce, WhereAMajorityHasItNothingIsWritten) {
  do_job(*direct);
  for (const RedisServer& server : servers) {
    server.command("CONFIG", "RESETSTAT");
  }
  EXPECT_TRUE(find(*direct));
  let_finish(*direct);
  for (const RedisServer& server : servers) {
    const std::string stats = server.command("INFO", "commandstats");
    EXPECT_EQ(stats.find("cmdstat_set:"), std::string::npos) << stats;
  }
}

TEST_F(RedlockOnce, TooFewServersAreNoAnswer) {
  do_job(*direct);
  strike(0b110, Death::killed);
  const auto found = direct->find_mark({"job", ""}, soon());
  EXPECT_EQ(found.error().code, Errc::unreachable);
  EXPECT_NE(found.error().message.find("1 of 3 servers answered, 2 are needed"), std::string::npos)
      << found.error().message;
  EXPECT_FALSE(direct->list_marks("", soon()));
  EXPECT_FALSE(direct->forget_mark({"job", ""}, soon()));
  EXPECT_FALSE(direct->prepare_marks("job", soon()));
}

TEST_F(RedlockOnce, AServerThatHasLostItsDataIsToldByWhoReads) {
  do_job(*direct);
  for (const unsigned node : members(kAll)) {
    flush(1U << node);
    // Until it was among those that answered first.
    EXPECT_TRUE(eventually([&] { return find(*direct) && having(entry(), kAll) == kAll; }));
  }
}

// Its request waits behind one that the server has not answered.
TEST_F(RedlockOnce, ACopyThatIsSentLateEndsWithTheMark) {
  (void)complete_on(0b001);
  const auto end_on = [&](unsigned node) {
    const std::string text = servers[node].command("GET", entry());
    return text.size() > 22 ? std::stoll(text.substr(22)) : 0;
  };
  strike(0b100, Death::stopped);
  EXPECT_TRUE(find(*direct));
  util::wait_readable(-1, in(1'500));  // what the copy must not outlive the mark by
  heal(0b100, Death::stopped);
  let_finish(*direct);
  ASSERT_EQ(having(entry(), kAll), kAll);
  EXPECT_LT(end_on(2) - end_on(0), 1'000);
}

TEST_F(RedlockOnce, ANewerMarkCountsWhoeverHasTheOlderOne) {
  do_job(*proxied);
  strike(0b100, Death::cut);
  const auto lease = hold(*proxied, request("job"));
  ASSERT_TRUE(lease);
  EXPECT_TRUE(complete(*lease));
  heal(0b100, Death::cut);
  const auto mark = find_without(0b001);
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->owner.id, lease->owner_id());
  const auto listed = direct->list_marks("", soon());
  ASSERT_EQ(listed.value().size(), 1u);
  EXPECT_EQ(listed.value()[0].owner.id, lease->owner_id());
}

// --- forgetting

TEST_F(RedlockOnce, WhatIsForgottenDoesNotComeBackWithAServerThatWasAway) {
  do_job(*proxied);
  strike(0b100, Death::cut);
  EXPECT_TRUE(proxied->forget_mark({"job", ""}, soon()).value());
  EXPECT_FALSE(find(*proxied));
  heal(0b100, Death::cut);
  EXPECT_FALSE(find_without(0b001));
  EXPECT_FALSE(find_without(0b010));
  EXPECT_TRUE(direct->list_marks("", soon()).value().empty());
  EXPECT_FALSE(direct->forget_mark({"job", ""}, soon()).value());
  do_job(*direct);
  EXPECT_TRUE(find(*direct));
}

TEST_F(RedlockOnce, AResetThatAMinorityHasIsSeenByAllOnceItWasSeen) {
  do_job(*direct);
  for (const unsigned node : {1U, 2U}) servers[node].command("CONFIG", "SET", "maxmemory", "1");
  EXPECT_EQ(direct->forget_mark({"job", ""}, soon()).error().code, Errc::unreachable);
  for (const unsigned node : {1U, 2U}) servers[node].command("CONFIG", "SET", "maxmemory", "0");
  EXPECT_FALSE(find_without(0b010));
  EXPECT_FALSE(find_without(0b001));
}

// As after a run that could not say that it has succeeded.
TEST_F(RedlockOnce, WhatOnlyASlowServerRemembersIsListedAndForgotten) {
  (void)complete_on(0b001);
  heal(0b110, Death::cut);
  (void)proxied->find_mark({"other", ""}, soon());  // which connects
  let_finish(*proxied);
  proxies[0].delay_requests(Millis{30});
  EXPECT_EQ(proxied->list_marks("", soon()).value().size(), 1u);
  EXPECT_TRUE(proxied->forget_mark({"job", ""}, soon()).value());
  proxies[0].pass();
  EXPECT_FALSE(find_without(0b010));
  EXPECT_FALSE(find_without(0b100));
}

// The reset ends later than any mark that it forgets, also where a shorter mark has replaced it.
TEST_F(RedlockOnce, AForgottenMarkDoesNotComeBackWhenALaterOneIsOver) {
  do_job(*proxied);
  strike(0b100, Death::cut);
  EXPECT_TRUE(proxied->forget_mark({"job", ""}, soon()).value());
  const auto lease = hold(*proxied, request("job"));
  ASSERT_TRUE(lease);
  EXPECT_TRUE(lease->complete({"", Millis{1'000}}, soon(), Cancel()));
  EXPECT_TRUE(eventually([&] { return !find(*proxied); }));
  heal(0b100, Death::cut);
  EXPECT_FALSE(find_without(0b001));
  EXPECT_TRUE(direct->list_marks("", soon()).value().empty());
}

// By clients that have read something older, and are slow to write it elsewhere.
TEST_F(RedlockOnce, ALateCopyReplacesNothingThatIsHigher) {
  do_job(*direct);
  const std::string older = servers[0].command("GET", entry());
  const auto write = [&](const std::string& rank) {
    const auto its = names("job");
    return servers[0].command("EVAL", std::string(redis::kKeep.text), "5", its.lock, its.counter,
                              its.owner, its.queue, entry(), "", "", "", "", rank, "60000",
                              older.substr(older.find('{')));
  };
  const std::string mark_rank = older.substr(0, 21);
  const std::string reset_rank = older.substr(0, 20) + 'r';
  EXPECT_EQ(write(std::string(20, '0') + 'r'), "1");
  EXPECT_EQ(write(mark_rank), "1");
  EXPECT_EQ(servers[0].command("GET", entry()), older);
  EXPECT_EQ(write(reset_rank), "1");
  EXPECT_EQ(write(mark_rank), "1");
  EXPECT_TRUE(servers[0].command("GET", entry()).starts_with(reset_rank));
  do_job(*direct);
  const std::string newer = servers[0].command("GET", entry());
  EXPECT_EQ(write(reset_rank), "1");
  EXPECT_EQ(servers[0].command("GET", entry()), newer);
}

// A request to complete that is on its way while the mark is forgotten: it comes to a server that
// has not heard of that.
TEST_F(RedlockOnce, ALateRequestDoesNotBringBackWhatIsForgotten) {
  const auto lease = begin();
  proxies[2].delay_requests(Millis{2'000});
  EXPECT_TRUE(complete(*lease));
  const auto entry_on_two = [&] { return having(entry(), 0b100); };
  EXPECT_EQ(entry_on_two(), 0U);
  servers[2].command("CONFIG", "SET", "maxmemory", "1");  // takes no reset
  EXPECT_TRUE(direct->forget_mark({"job", ""}, soon()).value());
  let_finish(*direct);
  servers[2].command("CONFIG", "SET", "maxmemory", "0");
  EXPECT_TRUE(eventually([&] { return entry_on_two() != 0; }));
  EXPECT_FALSE(find_without(0b001));
  EXPECT_FALSE(find_without(0b010));
}

TEST_F(RedlockOnce, ALateRequestLeavesNoMarkAfterTheLockWasLost) {
  const auto lease = begin();
  for (Proxy& proxy : proxies) proxy.delay_requests(Millis{2'000});
  EXPECT_EQ(code_of(complete(*lease, in(100))), Errc::unreachable);
  for (Proxy& proxy : proxies) proxy.pass();
  std::deque<Monitor> monitors;
  EXPECT_TRUE(direct->force_release("job", lease->owner_id(), "test", soon()).value());
  const auto next = hold(*direct, request("job"));
  ASSERT_TRUE(next);
  for (const RedisServer& server : servers) monitors.emplace_back(server);
  for (Monitor& monitor : monitors) {
    EXPECT_TRUE(eventually([&] {
      const auto commands = monitor.commands();
      return std::find(commands.begin(), commands.end(), "EVALSHA") != commands.end();
    }));
  }
  EXPECT_EQ(having(entry(), kAll), 0U);
  EXPECT_EQ(code_of(complete(*lease)), Errc::lost);
  EXPECT_TRUE(renew_soon(*next));
  EXPECT_TRUE(complete(*next));
}

// --- what stands there, rights, and what is kept

TEST_F(RedlockOnce, WhatOneServerHasThereThatIsNoMarkDoesNotMatter) {
  servers[0].command("LPUSH", entry(), "theirs");
  EXPECT_FALSE(find(*direct));
  do_job(*direct);
  EXPECT_TRUE(find(*direct));
  EXPECT_EQ(servers[0].command("LRANGE", entry(), "0", "-1"), "theirs");
  EXPECT_EQ(direct->list_marks("", soon()).value().size(), 1u);
}

TEST_F(RedlockOnce, WhatMostServersHaveThereThatIsNoMarkIsAConflict) {
  for (const unsigned node : {0U, 1U}) servers[node].command("SET", entry(), "theirs");
  const auto found = direct->find_mark({"job", ""}, soon());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::conflict) << found.error().message;
  const auto lease = begin();
  EXPECT_EQ(code_of(complete(*lease)), Errc::conflict);
  EXPECT_EQ(having(lock_of("job"), kAll), kAll);
  EXPECT_TRUE(release(*lease));
}

TEST_F(RedlockOnce, AUserWithTheRightsOfTheManPageCanDoAllOfIt) {
  for (const RedisServer& server : servers) server.run(user_with_few_rights("few"));
  const auto few = connect("few:pw@" + addresses_of(servers));
  EXPECT_TRUE(few->prepare_marks("job", soon()));
  do_job(*few);
  flush(0b001);
  EXPECT_TRUE(find(*few));
  EXPECT_TRUE(few->forget_mark({"job", ""}, soon()).value());
}

TEST_F(RedlockOnce, AUserWhoMayNotWriteIsToldBeforeTheJobIsRun) {
  for (const RedisServer& server : servers) {
    server.command("ACL", "SETUSER", "reader", "on", ">pw", "%R~*", "+@all");
  }
  const auto reader = connect("reader:pw@" + addresses_of(servers));
  EXPECT_FALSE(find(*reader));
  const auto ready = reader->prepare_marks("job", soon());
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Errc::denied) << ready.error().message;
}

// The lease of the lock is running.
TEST_F(RedlockOnce, PreparingDoesNotWaitForAServerThatIsSilent) {
  EXPECT_FALSE(find(*direct));
  strike(0b010, Death::stopped);
  const Deadline began = Clock::now();
  (void)said_by_preparing(in(1'000));
  EXPECT_LT(since(began), Millis{600});
}

TEST_F(RedlockOnce, OneWarningIfTooFewServersSaveAnything) {
  const auto said = [&] { return said_by_preparing(soon()); };
  servers[0].command("CONFIG", "SET", "save", "3600 1");
  const std::string warning = said();
  EXPECT_EQ(std::count(warning.begin(), warning.end(), '\n'), 1) << warning;
  EXPECT_FALSE(is_named(warning, 0)) << warning;
  EXPECT_TRUE(is_named(warning, 1)) << warning;
  EXPECT_TRUE(is_named(warning, 2)) << warning;
  servers[1].command("CONFIG", "SET", "appendonly", "yes");
  EXPECT_EQ(said(), "");
}

TEST_F(RedlockOnce, OneWarningIfSoManyServersMayDropKeysThatTooFewAreLeft) {
  for (const RedisServer& server : servers) server.command("CONFIG", "SET", "save", "3600 1");
  const auto let_drop = [&](unsigned node) {
    servers[node].command("CONFIG", "SET", "maxmemory", "100mb");
    servers[node].command("CONFIG", "SET", "maxmemory-policy", "volatile-lru");
  };
  let_drop(2);
  EXPECT_EQ(said_by_preparing(soon()), "");
  let_drop(1);
  const std::string warning = said_by_preparing(soon());
  EXPECT_EQ(std::count(warning.begin(), warning.end(), '\n'), 1) << warning;
  EXPECT_NE(warning.find("maxmemory-policy noeviction"), std::string::npos) << warning;
  EXPECT_FALSE(is_named(warning, 0)) << warning;
  EXPECT_TRUE(is_named(warning, 1)) << warning;
  EXPECT_TRUE(is_named(warning, 2)) << warning;
}

TEST_F(RedlockOnce, MarksOutliveARestartOfAllServers) {
  start(3, {.settings = {"appendonly yes", "appendfsync always"}});
  do_job(*client());
  strike(kAll, Death::killed);
  heal(kAll, Death::killed);
  EXPECT_TRUE(find(*client()));
}

// --- everything at once

// Connections break and servers are silent for a while, but none loses its data.  From the moment
// on when somebody knows that the job is done nobody begins it again.
TEST_F(RedlockOnce, WhatIsKnownToBeDoneIsNotBegunAgainOverABadNetwork) {
  constexpr unsigned kClients = 4;
  std::array<std::atomic<bool>, 10'000> known{};
  std::atomic<unsigned> round = 0;
  std::atomic<unsigned> done = 0;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kClients; ++i) {
    threads.emplace_back([&] {
      const auto own = through_proxies();
      while (!stop) {
        const unsigned number = round;
        const std::string key = "job" + std::to_string(number);
        const auto is_done = [&]() -> std::optional<bool> {
          const bool was_known = known[number];
          const auto found = own->find_mark({key, ""}, in(500));
          if (!found) return std::nullopt;
          EXPECT_TRUE(found.value() || !was_known) << key;
          if (found.value()) known[number] = true;
          return found.value().has_value();
        };
        const auto move_on = [&] {
          unsigned expected = number;
          round.compare_exchange_strong(expected, std::min(number + 1, 9'999U));
        };
        const auto before = is_done();
        if (!before || *before) {
          if (before) move_on();
          continue;
        }
        Request wanted = request(key);
        wanted.ttl = Millis{1'000};
        auto lease = own->acquire(wanted, {.until = in(500)});
        if (!lease) continue;
        const auto under_lock = is_done();
        if (under_lock && !*under_lock && Clock::now() < (*lease)->valid_until()) {
          while (Clock::now() < (*lease)->valid_until()) {
            const auto end = (*lease)->complete({"", kWeek}, in(200), Cancel());
            if (end) {
              known[number] = true;
              ++done;
            }
            if (end || end.error().code == Errc::lost) break;
          }
        } else {
          (void)(*lease)->release(in(300), Cancel());
        }
      }
    });
  }
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::minstd_rand random(seed);
  for (const Deadline until = in(8'000); Clock::now() < until;) {
    Proxy& proxy = proxies[random() % proxies.size()];
    switch (random() % 4) {
      case 0:
        proxy.blackhole();
        break;
      case 1:
        proxy.delay_requests(Millis{random() % 400});
        break;
      case 2:
        proxy.lose_reply_to("}:done:");
        break;
      default:
        proxy.cut();
    }
    util::wait_readable(-1, in(static_cast<int>(random() % 150)));
    proxy.cut();
    proxy.pass();
  }
  for (Proxy& proxy : proxies) proxy.pass();
  const unsigned before = done;
  EXPECT_TRUE(eventually([&] { return done > before; }));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  report("jobs done", done.load(), "");
  EXPECT_GT(done, 10U);
}

}  // namespace
}  // namespace dlock::test
