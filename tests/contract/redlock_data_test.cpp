// Servers that lose their data, and what stands there that is not ours.
#include <gtest/gtest.h>

#include <random>

#include "redlock_fixture.hpp"

namespace dlock::test {
namespace {

class RedlockData : public RedlockTest {
 protected:
  enum class Loss { flushed, restarted };
  void lose(Mask mask, Loss loss) {
    if (loss == Loss::flushed) return flush(mask);
    strike(mask, Death::killed);
    heal(mask, Death::killed);
  }
  bool is_empty(Mask mask) const {
    for (const unsigned node : members(mask)) {
      if (servers[node].command("DBSIZE") != "0") return false;
    }
    return true;
  }
};

// --- data that are lost while it is held

TEST_F(RedlockData, AServerThatForgetsIsGivenTheLockAgainAndTheFenceGoesOn) {
  auto a = client();
  auto b = client();
  std::uint64_t fence = 0;
  for (const Mask lost : {0b00001U, 0b00100U, 0b00011U, 0b10100U, 0b11000U}) {
    for (const Loss loss : {Loss::flushed, Loss::restarted}) {
      for (const Request& wanted : {request("job"), shared("job"), slots("job", 1)}) {
        SCOPED_TRACE(in_words(lost) + ' ' + std::string(mode_name(wanted.mode)));
        auto lease = hold(*a, wanted);
        ASSERT_TRUE(lease);
        ASSERT_TRUE(lease->fence());
        EXPECT_GT(*lease->fence(), fence);
        fence = *lease->fence();
        ASSERT_TRUE(is_held_by(kEach, "job"));
        let_finish(*a);
        lose(lost, loss);
        for (int i = 0; i < 2; ++i) {
          const auto renewed = renew_soon(*lease);
          EXPECT_TRUE(renewed) << renewed.error().message;
        }
        EXPECT_TRUE(eventually([&] { return renew(*lease) && having(lock_of("job")) == kEach; }));
        for (const unsigned node : members(lost)) EXPECT_EQ(counter(node), fence);
        EXPECT_EQ(code_of(try_once(*b, rival_of(wanted))), Errc::busy);
        const auto released = release(*lease);
        EXPECT_TRUE(released) << released.error().message;
      }
    }
  }
  EXPECT_TRUE(only_counters_are_left());
}

// What a rolling upgrade does, where nothing is kept on disk.
TEST_F(RedlockData, ARestartOfOneServerAfterAnotherIsSurvivedAlsoIfSomebodyWaits) {
  for (const bool is_waited_for : {false, true}) {
    auto a = client();
    auto lease = hold(*a, request("job", Mode::exclusive, 1, Millis{5'000}));
    ASSERT_TRUE(lease);
    ASSERT_TRUE(is_held_by(kEach, "job"));
    std::optional<Waiting> waiting;
    if (is_waited_for) {
      waiting.emplace(client(), request("job"));
      ASSERT_TRUE(eventually([&] { return having(names("job").queue) != 0; }));
    }
    for (unsigned node = 0; node < kServers; ++node) {
      lose(1U << node, Loss::restarted);
      // The waiter is granted the lock there, and by nobody else.
      if (is_waited_for && node == first_asked()) {
        ASSERT_TRUE(eventually([&] {
          const std::string calls = servers[node].command("INFO", "commandstats");
          return calls.find("cmdstat_eval") != std::string::npos;
        }));
      }
      EXPECT_TRUE(eventually([&] {
        const auto renewed = renew_soon(*lease);
        EXPECT_TRUE(renewed) << node << ": " << renewed.error().message;
        util::wait_readable(-1, in(50));
        return !renewed || std::ranges::all_of(servers, [&](const RedisServer& server) {
          return server.command("GET", lock_of("job")) == lease->owner_id();
        });
      })) << node;
    }
    EXPECT_EQ(code_of(try_once(*client(), request("job"))), Errc::busy);
    const auto fence = lease->fence();
    EXPECT_TRUE(release(*lease));
    auto next = is_waited_for ? waiting->lease() : hold(*client(), request("job"));
    ASSERT_TRUE(next);
    EXPECT_GT(next->fence(), fence);
    EXPECT_TRUE(release(*next));
    EXPECT_TRUE(only_counters_are_left());
  }
}

// An operator who deletes the lock, server by server, wants it to end.
TEST_F(RedlockData, WhatSomebodyHasDeletedIsNotGivenAgain) {
  auto a = client();
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 1)}) {
    auto lease = hold(*a, wanted);
    ASSERT_TRUE(lease);
    ASSERT_TRUE(is_held_by(kEach, "job"));
    let_finish(*a);
    for (const unsigned node : members(0b00011)) {
      servers[node].command("DEL", lock_of("job"), names("job").owner);
    }
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(renew_soon(*lease));
      let_finish(*a);
    }
    EXPECT_EQ(having(lock_of("job")), 0b11100U);
    servers[2].command("DEL", lock_of("job"), names("job").owner);
    EXPECT_EQ(code_of(renew(*lease)), Errc::lost);
    lease.reset();
    flush(kEach);
  }
}

TEST_F(RedlockData, WhereTheMajorityForgetsTheLockIsLost) {
  auto a = client();
  auto b = client();
  for (const Mask lost : {0b00111U, 0b11010U, 0b11111U}) {
    SCOPED_TRACE(in_words(lost));
    auto lease = hold(*a, request("job"));
    ASSERT_TRUE(is_held_by(kEach, "job"));
    let_finish(*a);
    flush(lost);
    const Deadline before = lease->valid_until();
    const auto renewed = renew(*lease);
    ASSERT_FALSE(renewed);
    EXPECT_EQ(renewed.error().code, Errc::lost) << renewed.error().message;
    EXPECT_NE(renewed.error().message.find("lost their data"), std::string::npos);
    EXPECT_EQ(lease->valid_until(), before);
    let_finish(*a);
    EXPECT_TRUE(is_empty(lost));
    const auto released = release(*lease);
    ASSERT_FALSE(released);
    EXPECT_EQ(released.error().code, Errc::lost) << released.error().message;
    EXPECT_TRUE(is_free_for(*b, request("job")));  // and what was left of it is gone, too
  }
  EXPECT_TRUE(only_counters_are_left());
}

// Two have forgotten it and one is stopped: nobody can tell whether it is ours.
TEST_F(RedlockData, WhetherItIsLostIsNotSaidBeforeItIsCertain) {
  auto a = client();
  auto lease = hold(*a, request("job"));
  ASSERT_TRUE(is_held_by(kEach, "job"));
  let_finish(*a);
  flush(0b00011);
  strike(0b00100, Death::stopped);
  const auto renewed = renew(*lease);
  ASSERT_FALSE(renewed);
  EXPECT_EQ(renewed.error().code, Errc::unreachable) << renewed.error().message;
  heal(0b00100, Death::stopped);
  EXPECT_TRUE(eventually([&] { return renew(*lease).has_value(); }));
  let_finish(*a);  // by now those that have forgotten it have it again
  flush(0b00111);
  EXPECT_EQ(code_of(renew(*lease)), Errc::lost);
}

// --- the counters

// Each time a minority forgets all, and so its counter, and then all are asked.  The counters are
// ahead of the clocks, which then do not help.
TEST_F(RedlockData, FencesGrowWhateverMinorityHasForgottenItsCounter) {
  for (const unsigned node : members(kEach)) {
    servers[node].command("SET", names("job").counter, "4000000000000");
  }
  std::mt19937 random(1);
  std::vector<std::unique_ptr<Backend>> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(client());
  const auto any_minority = [&] {
    Mask mask = 1U << random() % kServers;
    if (random() % 4 != 0) mask |= 1U << random() % kServers;
    return mask;
  };
  std::uint64_t last = 0;
  Mask down = 0;
  int backward = 0;
  for (int i = 0; i < 300; ++i) {
    Backend& one = *clients[random() % clients.size()];
    auto lease = hold(one, request("job"));
    ASSERT_TRUE(lease) << i;
    ASSERT_TRUE(lease->fence());
    if (*lease->fence() <= last) ++backward;
    last = std::max(last, *lease->fence());
    let_finish(one);
    EXPECT_TRUE(release(*lease));
    let_finish(one);
    // Those that were down have to be asked first: else more than a minority has forgotten.
    if (down != 0) {
      heal(std::exchange(down, 0), Death::killed);
    } else if (i % 10 == 0) {
      down = any_minority();
      strike(down, Death::killed);
    } else {
      flush(any_minority());
    }
  }
  EXPECT_EQ(backward, 0) << "of 300 tokens";
}

TEST_F(RedlockData, AlsoThoseThatWereNotWaitedForHaveTheToken) {
  auto a = client();
  for (int i = 0; i < 20; ++i) {
    auto lease = hold(*a, request("job"));
    ASSERT_TRUE(lease);
    let_finish(*a);
    for (const unsigned node : members(kEach)) EXPECT_EQ(counter(node), *lease->fence()) << node;
    EXPECT_TRUE(release(*lease));
  }
}

// --- what others have put there

TEST_F(RedlockData, AMinorityWithAnothersLockStopsNobody) {
  auto a = client();
  auto b = client();
  for (const Mask taken : {0b00001U, 0b00011U, 0b10100U, 0b11000U}) {
    SCOPED_TRACE(in_words(taken));
    put_foreign(taken);
    for (const Request& wanted : {request("job"), shared("job"), slots("job", 1)}) {
      auto lease = try_once(*a, wanted);
      ASSERT_TRUE(lease) << lease.error().message;
      EXPECT_EQ(code_of(try_once(*b, rival_of(wanted))), Errc::busy);
      EXPECT_TRUE(renew_soon(**lease));
      EXPECT_TRUE(release(**lease));
    }
    for (const unsigned node : members(taken)) {
      EXPECT_EQ(servers[node].command("GET", lock_of("job")), "somebody else");
    }
    flush(kEach);
  }
}

TEST_F(RedlockData, WhatIsLeftOfADeadClientOnAMinorityStopsNobody) {
  const Mask left = 0b01001;
  for (const unsigned node : members(left)) {
    auto dead = connect_redis(servers[node].port());
    ASSERT_TRUE(hold(*dead, request("job")));
  }
  auto a = client();
  auto b = client();
  auto lease = try_once(*a, request("job"));
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
  EXPECT_TRUE(renew_soon(**lease));
  EXPECT_TRUE(release(**lease));
}

TEST_F(RedlockData, WhoHasTheMajorityExcludesAndIsShown) {
  auto a = client();
  auto b = client();
  const Request held = request("job");
  auto lease = hold(*a, held);
  ASSERT_TRUE(is_held_by(kEach, "job"));
  let_finish(*a);
  flush(0b10001);
  EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
  const LockInfo info = inspect(*b, "job");
  ASSERT_EQ(info.holders.size(), 1u);
  EXPECT_EQ(info.holders[0].owner.id, lease->owner_id());
  EXPECT_EQ(info.holders[0].owner.command, "./contract test");
  EXPECT_EQ(info.holders[0].fence, lease->fence());
  EXPECT_EQ(info.nodes_agreeing, 3u);
  EXPECT_EQ(info.nodes_total, 5u);
  EXPECT_EQ(info.remarks.size(), 2u);
  EXPECT_TRUE(renew_soon(*lease));
  EXPECT_TRUE(release(*lease));
}

TEST_F(RedlockData, SplitLeftoversAreWaitedForUntilTheyExpire) {
  auto a = client();
  // Nobody can have a majority before the first two are gone.
  for (const auto& [first, last] : {std::pair{"2000", "60000"}, std::pair{"60000", "2000"}}) {
    servers[0].command("SET", lock_of("job"), "one", "PX", first);
    servers[1].command("SET", lock_of("job"), "one", "PX", first);
    servers[2].command("SET", lock_of("job"), "two", "PX", last);
    servers[3].command("SET", lock_of("job"), "two", "PX", last);
    EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
    std::unique_ptr<Lease> lease;
    const auto took = time_of([&] { lease = hold(*a, request("job")); });
    ASSERT_TRUE(lease);
    EXPECT_LT(took, here(Millis{15'000}));
    EXPECT_TRUE(release(*lease));
    flush(kEach);
  }
}

// --- waiting at a server that the holder does not have

TEST_F(RedlockData, AWaiterAtAServerThatAnotherHasGetsTheLockWhenTheHolderReleasesIt) {
  for (const Mask taken : {0b00001U, 0b00011U, 0b00100U, 0b10001U}) {
    SCOPED_TRACE(in_words(taken));
    put_foreign(taken);
    auto a = client();
    auto lease = hold(*a, request("job"));
    ASSERT_TRUE(lease);
    Waiting waiting(client(), request("job"), in(6'000));
    ASSERT_TRUE(waiting.blocked());
    ASSERT_TRUE(eventually([&] { return having(names("job").queue) != 0; }));
    EXPECT_TRUE(release(*lease));
    const auto took = time_of([&] { lease = waiting.lease(); });
    report("woken, " + in_words(taken) + " with another's lock", took);
    EXPECT_LT(took, here(Millis{2'000}));
    ASSERT_TRUE(lease);
    EXPECT_TRUE(release(*lease));
    flush(kEach);
  }
}

TEST_F(RedlockData, AWaiterAtAServerWithADeadClientsLockGetsItWhenTheHolderReleasesIt) {
  auto dead = connect_redis(servers[0].port());
  ASSERT_TRUE(hold(*dead, request("job")));
  auto a = client();
  auto lease = hold(*a, request("job"));
  ASSERT_TRUE(lease);
  Waiting waiting(client(), request("job"), in(6'000));
  ASSERT_TRUE(waiting.blocked());
  ASSERT_TRUE(eventually([&] { return having(names("job").queue) != 0; }));
  EXPECT_TRUE(release(*lease));
  const auto took = time_of([&] { lease = waiting.lease(); });
  report("woken, server 0 with a dead client's lock", took);
  // The server that is asked first is believed for as long as a waiter sleeps.
  EXPECT_LT(took, here(Millis{first_asked() == 0 ? 4'500 : 2'000}));
}

// The queue is lost with the data, and then nobody calls.
TEST_F(RedlockData, AWaiterWhoseServerForgetsGetsTheLockAtTheLatestWhenItWouldHaveExpired) {
  auto a = client();
  for (const Loss loss : {Loss::flushed, Loss::restarted}) {
    auto lease = hold(*a, request("job", Mode::exclusive, 1, Millis{4'000}));
    ASSERT_TRUE(lease);
    ASSERT_TRUE(is_held_by(kEach, "job"));
    Waiting waiting(client(), request("job"), in(6'000));
    ASSERT_TRUE(waiting.blocked());
    Mask head = 0;
    ASSERT_TRUE(eventually([&] { return (head = having(names("job").queue)) != 0; }));
    lose(head, loss);
    EXPECT_TRUE(renew_soon(*lease));
    EXPECT_FALSE(waiting.done(50));
    EXPECT_TRUE(release(*lease));
    const auto took = time_of([&] { lease = waiting.lease(); });
    report(loss == Loss::flushed ? "woken, the queue was flushed" : "woken, its server restarted",
           took);
    EXPECT_LT(took, here(Millis{5'000}));
    ASSERT_TRUE(lease);
    EXPECT_TRUE(release(*lease));
  }
}

TEST_F(RedlockData, AWaiterWhoseServerDiesGetsTheLockWhenItIsReleased) {
  auto a = client();
  for (const Death death : {Death::killed, Death::stopped}) {
    auto lease = hold(*a, request("job"));
    ASSERT_TRUE(lease);
    ASSERT_TRUE(is_held_by(kEach, "job"));
    Waiting waiting(client(), request("job"), in(6'000));
    ASSERT_TRUE(waiting.blocked());
    Mask head = 0;
    ASSERT_TRUE(eventually([&] { return (head = having(names("job").queue)) != 0; }));
    strike(head, death);
    if (death == Death::killed) {  // it joins the queue of another
      EXPECT_TRUE(eventually([&] { return having(names("job").queue, kEach & ~head) != 0; }));
    }
    EXPECT_TRUE(renew_soon(*lease));
    EXPECT_FALSE(waiting.done(50));
    EXPECT_TRUE(release(*lease));
    if (death == Death::stopped) heal(head, death);  // what it has been told it tells
    const auto took = time_of([&] { lease = waiting.lease(); });
    report(death == Death::killed ? "woken, its server was killed" : "woken, it was stopped", took);
    EXPECT_LT(took, here(Millis{3'000}));
    ASSERT_TRUE(lease);
    EXPECT_TRUE(release(*lease));
    if (death == Death::killed) heal(head, death);
  }
}

}  // namespace
}  // namespace dlock::test
