// Connections that end, and answers that are lost, late or never come.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "zookeeper_fixture.hpp"

namespace dlock::test {
namespace {

class ZooKeeperNetwork : public ZooKeeperTest {
 protected:
  bool is_empty() { return queue_is(0); }
};

std::vector<Request> each_mode() { return {request("job"), shared("job"), slots("job", 1)}; }

// --- lost

// What names the lock: parents, create and list, on a key that is new and on one that is not.
TEST_F(ZooKeeperNetwork, AnAcquireIsGrantedOnceWhicheverReplyIsLost) {
  std::uint64_t fence = 0;
  for (const Request& wanted : each_mode()) {
    for (const bool known : {false, true}) {
      long lost = 0;
      for (int skip = 0; skip < 8; ++skip) {
        SCOPED_TRACE(std::string(mode_name(wanted.mode)) + (known ? " known " : " new ") +
                     std::to_string(skip));
        if (!known) nodes().remove_all("/dlock");
        auto client = through_proxy();
        const long before = proxy->lost_replies();
        proxy->lose_reply_to("dlock", 1, skip);
        auto lease = hold(*client, wanted);
        ASSERT_TRUE(lease);
        EXPECT_EQ(children().size(), zookeeper_nodes_of(wanted));
        EXPECT_EQ(code_of(try_once(*b, zookeeper_rival_of(wanted))), Errc::busy);
        EXPECT_GT(*lease->fence(), fence);
        fence = *lease->fence();
        EXPECT_TRUE(renew(*lease));
        lost += proxy->lost_replies() - before;
        proxy->pass();
        EXPECT_TRUE(release(*lease));
        EXPECT_TRUE(is_empty());
        nodes().create_all("/dlock/job");
      }
      EXPECT_GE(lost, known ? 1 : 3);
    }
  }
}

TEST_F(ZooKeeperNetwork, AWaiterKeepsItsPlaceWhicheverReplyIsLost) {
  for (int skip = 0; skip < 6; ++skip) {
    SCOPED_TRACE(skip);
    auto lease = hold(*a, request("job"));
    proxy->lose_reply_to("dlock", 1, skip);
    const Request first = request("job");
    Waiting one(through_proxy(), first);
    ASSERT_TRUE(one.blocked());
    ASSERT_TRUE(queue_is(2));
    Waiting two(client(), request("job"));
    ASSERT_TRUE(waiters_are(2));
    EXPECT_EQ(inspect(*b, "job").waiters->at(0).owner.id, first.owner.id);
    EXPECT_TRUE(release(*lease));
    lease = one.lease();  // not for itself
    ASSERT_TRUE(lease);
    EXPECT_FALSE(two.done(20));
    proxy->pass();
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(release(*two.lease()));
    EXPECT_TRUE(is_empty());
  }
}

// --- given up

TEST_F(ZooKeeperNetwork, WhoeverGivesUpWithTheAnswerOutstandingLeavesNothing) {
  for (const bool cancelled : {true, false}) {
    auto backend = through_proxy(400);
    proxy->hold();
    Waiting waiting(std::move(backend), request("job", Mode::exclusive, 1, Millis{2'000}));
    // The server has made the session, but who asked does not know.
    const auto took = time_of([&] {
      if (cancelled) waiting.cancel();
      EXPECT_EQ(code_of(waiting.result()), cancelled ? Errc::cancelled : Errc::unreachable);
    });
    EXPECT_LT(took, here(Millis{5'000}));
    proxy->pass();
    EXPECT_TRUE(is_empty());
    EXPECT_TRUE(is_free_for(*a, request("job")));
  }
}

TEST_F(ZooKeeperNetwork, AWaiterThatGivesUpWhileTheServerIsSilentLeavesNothing) {
  for (const bool blackhole : {false, true}) {
    auto lease = hold(*a, request("job"));
    Waiting waiting(through_proxy(400), request("job", Mode::exclusive, 1, Millis{1'500}));
    ASSERT_TRUE(queue_is(2));
    blackhole ? proxy->blackhole() : proxy->drop();
    waiting.cancel();
    EXPECT_EQ(code_of(waiting.result()), Errc::cancelled);
    EXPECT_TRUE(queue_is(1));  // by its session, at the latest
    proxy->pass();
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(is_empty());
  }
}

// Two connections are lost: one with the request to delete the node, or with the answer to its
// create; the next with the last request of the client, the end of the session.
TEST_F(ZooKeeperNetwork, WhoeverGivesUpOverALostConnectionLeavesNothing) {
  for (const bool joining : {true, false}) {
    SCOPED_TRACE(joining ? "while its node is made" : "in the queue");
    auto lease = hold(*a, request("job"));
    if (joining) proxy->lose_reply_to("-lock-");
    Waiting waiting(through_proxy(), request("job"));
    ASSERT_TRUE(queue_is(2));
    proxy->delay_requests(Millis{300});
    if (joining) {
      ASSERT_TRUE(eventually([&] { return proxy->lost_replies() == 1; }));
      waiting.cancel();
    } else {
      const auto before = proxy->request_bytes();
      waiting.cancel();
      ASSERT_TRUE(eventually([&] { return proxy->request_bytes() > before; }));
      proxy->cut();
    }
    EXPECT_EQ(code_of(waiting.result()), Errc::cancelled);
    proxy->cut();
    proxy->pass();
    EXPECT_TRUE(queue_is(1));
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(is_empty());
  }
}

// The server carries out all requests, but none of its replies arrives.
TEST_F(ZooKeeperNetwork, WhoeverGivesUpJoiningAServerThatIsSilentLeavesNothing) {
  auto lease = hold(*a, request("job"));
  proxy->delay_requests(Millis{300});
  Waiting waiting(through_proxy(1'500), request("job"));
  // The request for a session is shorter: the create has been sent.
  ASSERT_TRUE(eventually([&] { return proxy->request_bytes() > 150; }));
  proxy->hold();
  ASSERT_TRUE(queue_is(2));
  waiting.cancel();
  EXPECT_EQ(code_of(waiting.result()), Errc::cancelled);
  EXPECT_TRUE(queue_is(1));
  proxy->pass();
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(is_empty());
}

class ZooKeeperCut : public ZooKeeperNetwork, public testing::WithParamInterface<unsigned> {};

// The parameter is the number of slots; 0: exclusive.
TEST_P(ZooKeeperCut, WhateverIsCutWhenTwoNeverHoldItAndNothingIsLeft) {
  const auto wanted = [] { return GetParam() == 0 ? request("job") : slots("job", GetParam()); };
  std::atomic<bool> stop = false;
  std::array<std::atomic<int>, 4> holders{};  // by the number of their slot
  std::atomic<int> granted = 0;
  const auto seed = static_cast<unsigned>(Clock::now().time_since_epoch().count());
  SCOPED_TRACE(seed);
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(seed + thread);
      auto client = through_proxy();
      while (!stop) {
        const auto until = in(static_cast<int>(random() % 200));
        auto lease = client->acquire(wanted(), {.until = until});
        if (!lease) {
          EXPECT_TRUE(lease.error().code == Errc::busy || lease.error().code == Errc::unreachable)
              << lease.error().message;
          continue;
        }
        const unsigned number = (*lease)->slot().value_or(0);
        EXPECT_EQ(number == 0, GetParam() == 0);
        EXPECT_LE(number, GetParam());
        EXPECT_EQ(++holders.at(number), 1) << number;
        ++granted;
        if (random() % 2 == 0) (void)(*lease)->renew(in(500), Cancel());
        --holders.at(number);
        while (!release(**lease) && Clock::now() < (*lease)->valid_until()) {
        }
      }
    });
  }
  proxy->cut_often(seed, [&] { return granted > 5; });
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_GT(granted, 5);
  // None of them is waiting for a session to expire (30 s): all was given up.
  EXPECT_TRUE(is_empty());
}

INSTANTIATE_TEST_SUITE_P(, ZooKeeperCut, testing::Values(0U, 1U, 2U, 3U));

// --- late

TEST_F(ZooKeeperNetwork, RepliesMayComeByteByByte) {
  proxy->chunk(1);
  auto lease = hold(*through_proxy(), request("job"));
  Waiting waiting(through_proxy(), request("job"));
  ASSERT_TRUE(waiters_are(1));
  EXPECT_TRUE(renew(*lease));
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(waiting.lease());
}

TEST_F(ZooKeeperNetwork, ALateRenewalIsNotCreditedToTheNext) {
  auto lease = hold(*through_proxy(), request("job"));
  proxy->hold();
  EXPECT_EQ(code_of(lease->renew(in(150), Cancel())), Errc::unreachable);
  nodes().remove("/dlock/job/" + children().at(0));
  proxy->release();
  EXPECT_EQ(code_of(renew(*lease)), Errc::lost);
}

TEST_F(ZooKeeperNetwork, ASilentNetworkEndsEveryCallInTime) {
  for (const bool blackhole : {false, true}) {
    auto client = through_proxy(300);
    auto lease = hold(*client, request("job"));
    EXPECT_TRUE(inspect(*client, "job").holders.size() == 1);
    listen_to(*lease);
    blackhole ? proxy->blackhole() : proxy->drop();
    const auto took = time_of([&] {
      EXPECT_EQ(code_of(lease->renew(in(200), Cancel())), Errc::unreachable);
      EXPECT_EQ(code_of(try_once(*client, request("other"))), Errc::unreachable);
      EXPECT_EQ(client->inspect("job", in(200)).error().code, Errc::unreachable);
      EXPECT_EQ(client->list("", in(200)).error().code, Errc::unreachable);
      EXPECT_EQ(code_of(lease->release(in(200), Cancel())), Errc::unreachable);
    });
    EXPECT_LT(took, here(Millis{5'000}));
    proxy->pass();
    // That release may have been heard, and only its answer not.
    EXPECT_TRUE(eventually([&] { return lease->release(in(1'000), Cancel()).has_value(); }));
    EXPECT_TRUE(is_empty());
  }
}

TEST_F(ZooKeeperNetwork, AnAnswerProvesNothingAboutTheTimeAfterItWasAskedFor) {
  auto lease = hold(*through_proxy(), request("job", Mode::exclusive, 1, Millis{2'000}));
  proxy->delay_replies(Millis{300});
  const Deadline asked = Clock::now();
  EXPECT_TRUE(renew(*lease));
  EXPECT_LE(lease->valid_until(), asked + Millis{2'000});
}

// No answer arrives within half of the connect timeout, so this waiter connects again and again.
// That keeps its session alive, and its node would stay the first in the queue.
TEST_F(ZooKeeperNetwork, AWaiterThatHearsNothingInTimeLeavesItsPlaceToTheNext) {
  auto lease = hold(*a, request("job"));
  Waiting slow(through_proxy(1'000), request("job", Mode::exclusive, 1, Millis{4'000}));
  ASSERT_TRUE(waiters_are(1));
  Waiting next(client(), request("job"));
  ASSERT_TRUE(waiters_are(2));
  proxy->delay_replies(Millis{700});
  EXPECT_TRUE(release(*lease));
  lease = next.lease();
  ASSERT_TRUE(lease);
  EXPECT_FALSE(slow.done(0));
  proxy->pass();
  EXPECT_TRUE(release(*lease));
  lease = slow.lease();
  ASSERT_TRUE(lease);
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(is_empty());
}

// --- connections that end

TEST_F(ZooKeeperNetwork, AHolderWhoseConnectionIsCutRenewsOnANewOne) {
  auto lease = hold(*through_proxy(), request("job"));
  const int events = listen_to(*lease);
  for (const Cut how : {Cut::rst, Cut::fin}) {
    proxy->cut(how);
    EXPECT_TRUE(util::wait_readable(events, soon()));
    EXPECT_TRUE(renew(*lease));
  }
  // And hears of its node on the new one, too.
  nodes().remove("/dlock/job/" + children().at(0));
  const auto took = time_of([&] { EXPECT_TRUE(util::wait_readable(events, soon())); });
  EXPECT_LT(took, here(Millis{1'000}));
  EXPECT_EQ(code_of(renew(*lease)), Errc::lost);
}

TEST_F(ZooKeeperNetwork, AWaiterWhoseConnectionIsCutMissesNothing) {
  for (int round = 0; round < 4; ++round) {
    auto lease = hold(*a, request("job"));
    Waiting waiting(through_proxy(), request("job"));
    ASSERT_TRUE(queue_is(2));
    const auto before = children();
    if (round == 3) proxy->refuse();
    proxy->cut();
    if (round > 0) {  // released while it is not there
      EXPECT_TRUE(release(*lease));
    }
    proxy->pass();
    if (round == 0) {
      EXPECT_FALSE(waiting.done(50));
      EXPECT_EQ(children(), before);
      EXPECT_TRUE(release(*lease));
    }
    auto next = waiting.lease();
    ASSERT_TRUE(next);
    EXPECT_EQ(children().at(0), before.at(0) == children().at(0) ? before.at(0) : before.at(1));
    EXPECT_TRUE(release(*next));
  }
}

TEST_F(ZooKeeperNetwork, ARefusedConnectionSaysSo) {
  proxy->refuse();
  const auto lease = try_once(*through_proxy(), request("job"));
  ASSERT_EQ(code_of(lease), Errc::unreachable);
  EXPECT_NE(lease.error().message.find("127.0.0.1:" + std::to_string(proxy->port())),
            std::string::npos);
  EXPECT_NE(lease.error().message.find("connection refused"), std::string::npos)
      << lease.error().message;
}

// As a server does that starts: it refuses, and then drops the first words of a connection.
TEST_F(ZooKeeperNetwork, AfterARefusalTooAConnectionThatStaysSilentIsMadeAnew) {
  proxy->refuse();
  Waiting waiter(through_proxy(static_cast<int>(kPatience.count())), request("job"));
  EXPECT_FALSE(waiter.done(500));
  proxy->blackhole();
  ASSERT_TRUE(eventually([&] { return proxy->connections() > 0; }));
  proxy->pass();
  EXPECT_LT(time_of([&] { EXPECT_TRUE(waiter.lease()); }), kPatience - Millis{5'000});
}

// It has lost its majority.  One that is full is waited for as long as for the lock.
TEST_F(ZooKeeperNetwork, AServerThatEndsConnectionsInAnotherWayThanAFullOneIsUnreachable) {
  proxy->blackhole();
  Waiting waiter(through_proxy(3'000), request("job"));
  const auto cut_next = [&](Cut how) {
    EXPECT_TRUE(eventually([&] { return proxy->open_connections() > 0 || waiter.done(0); }));
    proxy->cut(how);
  };
  for (int i = 0; i < 2; ++i) cut_next(Cut::rst);
  const Deadline until = soon();
  while (!waiter.done(0) && Clock::now() < until) cut_next(Cut::fin);
  ASSERT_TRUE(waiter.done(0));
  EXPECT_EQ(code_of(waiter.result()), Errc::unreachable);
}

TEST_F(ZooKeeperNetwork, OneServerThatIsSilentCostsNotTheOthersTime) {
  proxy->blackhole();
  const std::string both =
      "zookeeper://127.0.0.1:" + std::to_string(proxy->port()) + ',' + server->address();
  for (int i = 0; i < 4; ++i) {  // the client begins with any of them
    auto client = connect_zookeeper(both, {.patience = Millis{3'000}});
    auto lease = try_once(*client, request("job"));
    ASSERT_TRUE(lease) << lease.error().message;
    EXPECT_TRUE(release(**lease));
  }
  EXPECT_TRUE(is_empty());
}

}  // namespace
}  // namespace dlock::test
