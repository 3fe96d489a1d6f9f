// Answers that are lost, late, slow or never come.
#include <gtest/gtest.h>

#include <utility>

#include "redis_fixture.hpp"

namespace dlock::test {
namespace {

class RedisNetwork : public RedisTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (IsSkipped()) return;
    teach_scripts();
    proxy.emplace("127.0.0.1", server->port());
  }
  std::unique_ptr<Backend> through_proxy(int patience_ms = 5'000) const {
    return connect_redis(proxy->port(), {}, Millis{patience_ms});
  }
  void lose_reply_to(const redis::Script& script, long skip = 0) {
    proxy->lose_reply_to(std::string(script.sha1), 1, skip);
  }
  bool is_held() const { return server->command("EXISTS", "dlock:job") == "1"; }

  std::optional<Proxy> proxy;
};

// --- lost

TEST_F(RedisNetwork, AnAcquireWhoseReplyIsLostIsGrantedAtOnceAndOnce) {
  std::uint64_t fence = 0;
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 1)}) {
    auto client = through_proxy();
    lose_reply_to(redis::kAsk);
    std::unique_ptr<Lease> lease;
    EXPECT_LT(time_of([&] { lease = hold(*client, wanted); }), here(Millis{3'000}));
    ASSERT_TRUE(lease);
    EXPECT_EQ(inspect(*b, "job").holders.size(), 1u);
    EXPECT_EQ(code_of(try_once(*b, rival_of(wanted))), Errc::busy);
    ASSERT_TRUE(lease->fence());
    EXPECT_GT(*lease->fence(), fence);
    fence = *lease->fence();
    EXPECT_EQ(inspect(*b, "job").holders.at(0).fence, fence);
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(only_the_counter_is_left());
  }
  EXPECT_EQ(proxy->lost_replies(), 3);
}

TEST_F(RedisNetwork, ATryWhoseReplyIsLostIsGrantedToo) {
  lose_reply_to(redis::kAsk);
  auto client = through_proxy();
  EXPECT_TRUE(try_once(*client, request("job")));
  EXPECT_EQ(proxy->lost_replies(), 1);
}

TEST_F(RedisNetwork, ARenewalWhoseReplyIsLostFailsOnceAndKeepsTheLock) {
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 1)}) {
    auto client = through_proxy();
    auto lease = hold(*client, wanted);
    const Deadline valid_until = lease->valid_until();
    lose_reply_to(redis::kRenew);
    if (auto renewed = renew(*lease); !renewed) {
      EXPECT_EQ(renewed.error().code, Errc::unreachable) << renewed.error().message;
      EXPECT_EQ(lease->valid_until(), valid_until);
    }
    EXPECT_TRUE(renew(*lease));
    EXPECT_GT(lease->valid_until(), valid_until);
    EXPECT_EQ(inspect(*b, "job").holders.size(), 1u);
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(only_the_counter_is_left());
  }
  EXPECT_EQ(proxy->lost_replies(), 3);
}

TEST_F(RedisNetwork, AReleaseWhoseReplyIsLostFreesTheLockAllTheSame) {
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 1)}) {
    auto client = through_proxy();
    auto lease = hold(*client, wanted);
    Waiting waiting(this->client(), rival_of(wanted));
    ASSERT_TRUE(waiters_are(1));
    lose_reply_to(redis::kLeave);
    const auto first = release(*lease);
    if (!first) {
      EXPECT_EQ(first.error().code, Errc::unreachable) << first.error().message;
    }
    auto next = waiting.lease();
    ASSERT_TRUE(next);
    if (!first) {
      const auto second = release(*lease);
      EXPECT_TRUE(second || second.error().code == Errc::lost);
    }
    EXPECT_TRUE(renew(*next));
    EXPECT_TRUE(release(*next));
    EXPECT_TRUE(only_the_counter_is_left());
  }
  EXPECT_EQ(proxy->lost_replies(), 3);
}

TEST_F(RedisNetwork, AWaiterWhoseReplyIsLostIsInTheQueueOnce) {
  auto lease = hold(*a, request("job"));
  lose_reply_to(redis::kAsk, 1);  // the first finds it held, the second joins
  Waiting waiting(through_proxy(), request("job"));
  ASSERT_TRUE(eventually([&] { return proxy->lost_replies() == 1; }));
  ASSERT_TRUE(waiters_are(1));
  EXPECT_EQ(server->command("ZCARD", redis::names_of("dlock:", "job").queue), "1");
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(release(*waiting.lease()));
  EXPECT_TRUE(only_the_counter_is_left());
}

// --- given up with the answer outstanding

TEST_F(RedisNetwork, WhoeverIsCancelledWithTheAnswerOutstandingHoldsNothing) {
  auto client = through_proxy();
  EXPECT_TRUE(inspect(*client, "job").holders.empty());  // it is connected
  proxy->hold();
  Waiting waiting(std::move(client), request("job"));
  ASSERT_TRUE(eventually([&] { return is_held(); }));
  const auto took = time_of([&] {
    waiting.cancel();
    EXPECT_EQ(code_of(waiting.result()), Errc::cancelled);
  });
  EXPECT_LT(took, here(Millis{4'000}));
  proxy->release();
  EXPECT_TRUE(only_the_counter_is_left());
}

TEST_F(RedisNetwork, WhoeverRunsOutOfPatienceWithTheAnswerOutstandingHoldsNothing) {
  auto client = through_proxy(400);
  EXPECT_TRUE(inspect(*client, "job").holders.empty());
  proxy->hold();
  EXPECT_EQ(code_of(try_once(*client, request("job"))), Errc::unreachable);
  proxy->release();
  EXPECT_TRUE(only_the_counter_is_left());
}

TEST_F(RedisNetwork, WhoeverGivesAStoppedServerUpHoldsNothingWhenItGoesOn) {
  auto client = hasty();
  EXPECT_TRUE(inspect(*client, "job").holders.empty());
  server->pause();
  EXPECT_LT(
      time_of([&] { EXPECT_EQ(code_of(try_once(*client, request("job"))), Errc::unreachable); }),
      Millis{4'000});
  server->resume();
  EXPECT_TRUE(only_the_counter_is_left());
}

// A request that is held up on its way must not take the lock when nobody wants it any more.
TEST_F(RedisNetwork, ARequestThatComesAfterItWasGivenUpTakesNothing) {
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 1)}) {
    auto client = through_proxy(1'000);
    EXPECT_TRUE(inspect(*client, "job").holders.empty());  // it is connected
    proxy->delay_requests(Millis{3'000});
    Waiting waiting(std::move(client), wanted, in(0));
    util::wait_readable(-1, in(300));
    proxy->pass();
    EXPECT_EQ(code_of(waiting.result()), Errc::unreachable);
    const Deadline until = in(4'000);
    while (Clock::now() < until) {
      ASSERT_FALSE(is_held()) << mode_name(wanted.mode);
      util::wait_readable(-1, in(20));
    }
  }
}

// Nor that of a waiter that was called: what took it out of the queue was no answer to this
// request.
TEST_F(RedisNetwork, ACalledWaiterWhoseRequestComesAfterItWasGivenUpTakesNothing) {
  for (const Request& wanted : {request("job"), shared("job")}) {
    auto held = hold(*a, request("job"));
    Waiting waiting(through_proxy(300), wanted);
    ASSERT_TRUE(waiters_are(1));
    auto before = proxy->request_bytes();
    ASSERT_TRUE(eventually([&] {  // it has asked all that it asks before it is called
      util::wait_readable(-1, in(100));
      return std::exchange(before, proxy->request_bytes()) == before;
    }));
    proxy->delay_requests(Millis{1'500});
    EXPECT_TRUE(release(*held));
    ASSERT_TRUE(eventually([&] { return proxy->request_bytes() > before; }));
    proxy->pass();  // for what comes after it
    auto lease = waiting.lease();
    ASSERT_TRUE(lease);
    EXPECT_TRUE(release(*lease));
    ASSERT_FALSE(is_held());
    for (const Deadline until = in(2'000); Clock::now() < until;) {
      ASSERT_FALSE(is_held()) << mode_name(wanted.mode);
      util::wait_readable(-1, in(20));
    }
    EXPECT_TRUE(only_the_counter_is_left());
  }
}

// --- late

// The request was held up on its way for longer than the ttl, so nobody may trust the grant.
TEST_F(RedisNetwork, AGrantThatIsAnsweredTooLateIsUndoneWhenTheWaitIsOver) {
  const Request wanted = request("job", Mode::exclusive, 1, Millis{2'000});
  auto client = through_proxy();
  EXPECT_TRUE(inspect(*client, "job").holders.empty());  // it is connected
  const auto before = proxy->request_bytes();
  proxy->delay_requests(wanted.ttl);
  Waiting waiting(std::move(client), wanted, in(1'900));
  ASSERT_TRUE(eventually([&] { return proxy->request_bytes() > before; }));
  proxy->pass();  // for what comes after it
  EXPECT_EQ(code_of(waiting.result()), Errc::busy);
  EXPECT_FALSE(is_held());
  EXPECT_TRUE(only_the_counter_is_left());
}

TEST_F(RedisNetwork, ALateReplyIsNeverTakenForAnother) {
  auto client = through_proxy(300);
  auto blocker = hold(*a, request("job"));
  EXPECT_TRUE(inspect(*client, "other").holders.empty());
  proxy->hold();
  EXPECT_EQ(code_of(try_once(*client, request("other"))), Errc::unreachable);  // was granted
  proxy->release();
  EXPECT_EQ(code_of(try_once(*client, request("job"))), Errc::busy);
  EXPECT_EQ(inspect(*client, "job").holders.size(), 1u);
  EXPECT_TRUE(inspect(*client, "other").holders.empty());
}

TEST_F(RedisNetwork, ALateRenewalIsNotCreditedToTheNext) {
  auto client = through_proxy();
  auto lease = hold(*client, request("job"));
  proxy->hold();
  const Deadline valid_until = lease->valid_until();
  EXPECT_EQ(lease->renew(in(150), Cancel()).error().code, Errc::unreachable);
  EXPECT_EQ(lease->valid_until(), valid_until);
  server->command("DEL", "dlock:job");
  proxy->release();
  EXPECT_EQ(renew(*lease).error().code, Errc::lost);
}

TEST_F(RedisNetwork, RepliesMayComeByteByByte) {
  proxy->chunk(1);
  auto client = through_proxy();
  auto lease = hold(*client, request("job"));
  Waiting waiting(through_proxy(), request("job"));
  ASSERT_TRUE(waiters_are(1));
  EXPECT_EQ(inspect(*client, "job").holders.size(), 1u);
  EXPECT_TRUE(renew(*lease));
  EXPECT_TRUE(release(*lease));
  lease = waiting.lease();
  ASSERT_TRUE(lease);
  EXPECT_GE(listen_to(*lease), 0);
  EXPECT_TRUE(release(*lease));
}

TEST_F(RedisNetwork, ASilentNetworkEndsEveryCallInTime) {
  auto client = through_proxy(300);
  auto lease = hold(*client, request("job"));
  lease->subscribe();
  for (const bool blackhole : {false, true}) {
    blackhole ? proxy->blackhole() : proxy->drop();
    const auto took = time_of([&] {
      EXPECT_EQ(lease->renew(in(200), Cancel()).error().code, Errc::unreachable);
      EXPECT_EQ(code_of(try_once(*client, request("other"))), Errc::unreachable);
      EXPECT_EQ(client->inspect("job", in(200)).error().code, Errc::unreachable);
      EXPECT_EQ(client->list("", in(200)).error().code, Errc::unreachable);
      EXPECT_EQ(lease->release(in(200), Cancel()).error().code, Errc::unreachable);
    });
    EXPECT_LT(took, here(Millis{5'000}));
    proxy->pass();
    server->command("DEL", "dlock:other");
    if (!blackhole) lease = hold(*client, request("again"));
  }
  EXPECT_TRUE(renew(*lease));
}

TEST_F(RedisNetwork, ARefusedConnectionSaysSo) {
  proxy->refuse();
  const auto lease = try_once(*through_proxy(), request("job"));
  ASSERT_EQ(code_of(lease), Errc::unreachable);
  EXPECT_EQ(lease.error().message,
            "redis 127.0.0.1:" + std::to_string(proxy->port()) + ": connection refused");
}

// --- connections that end

TEST_F(RedisNetwork, AHolderWhoseConnectionsAreKilledRenewsSilently) {
  const Request wanted = request("job");
  auto lease = hold(*a, wanted);
  const int events = listen_to(*lease);
  for (const char* kind : {"normal", "pubsub"}) {
    server->command("CLIENT", "KILL", "TYPE", kind);
    if (kind == std::string("pubsub")) {
      EXPECT_TRUE(util::wait_readable(events, soon()));
    }
    EXPECT_TRUE(renew(*lease)) << kind;
    EXPECT_FALSE(util::wait_readable(events, Deadline{}));
  }
  EXPECT_TRUE(*b->force_release("job", lease->owner_id(), {"test"}, soon()));
  EXPECT_TRUE(util::wait_readable(events, soon()));  // it has subscribed again
}

TEST_F(RedisNetwork, AWaiterWhoseConnectionsAreKilledKeepsItsPlace) {
  auto lease = hold(*a, request("job"));
  Request first = request("job");
  first.owner.label = "first";
  Waiting one(through_proxy(), first);
  ASSERT_TRUE(waiters_are(1));
  Waiting two(client(), request("job"));
  ASSERT_TRUE(waiters_are(2));
  proxy->cut();
  ASSERT_TRUE(eventually([&] { return proxy->open_connections() == 2; }));
  ASSERT_TRUE(waiters_are(2));
  EXPECT_EQ(inspect(*b, "job").waiters->at(0).owner.label, "first");
  server->command("CLIENT", "KILL", "TYPE", "pubsub");
  server->command("CLIENT", "KILL", "TYPE", "normal");
  ASSERT_TRUE(waiters_are(2));
  EXPECT_EQ(inspect(*b, "job").waiters->at(0).owner.label, "first");
  EXPECT_TRUE(release(*lease));
  lease = one.lease();
  ASSERT_TRUE(lease);
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(two.lease());
}

}  // namespace
}  // namespace dlock::test
