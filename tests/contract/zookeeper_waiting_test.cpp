// What a queue of waiters costs the server, and what can happen to one in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <list>

#include "zookeeper_fixture.hpp"

namespace dlock::test {
namespace {

class ZooKeeperQueue : public ZooKeeperTest {
 protected:
  static Request patient(const std::string& key = "job") {
    return request(key, Mode::exclusive, 1, Millis{60'000});  // pings come every 20 s
  }
  long number(const std::string& name) { return server->monitored("zk_" + name); }
  // Puts `count` of them into the queue, in their order.
  void queue_up(std::size_t count, const std::function<Request()>& wanted) {
    for (std::size_t i = 1; i <= count; ++i) {
      line.emplace_back(client(), wanted());
      ASSERT_TRUE(line.back().blocked());
    }
    ASSERT_TRUE(eventually([&] { return number("watch_count") >= static_cast<long>(count); }));
  }
  std::list<Waiting> line;
};

TEST_F(ZooKeeperQueue, OneOfACrowdIsWokenAtATime) {
  constexpr int kHandOvers = 50;
  auto lease = hold(*a, patient());
  ASSERT_NO_FATAL_FAILURE(queue_up(kCrowd, [] { return patient(); }));
  // Each watches one node, and none the same.
  EXPECT_EQ(number("watch_count"), static_cast<long>(kCrowd));
  const std::string crowd = std::to_string(kCrowd);
  EXPECT_NE(server->ask("wchs").find(crowd + " connections watching " + crowd + " paths"),
            std::string::npos)
      << server->ask("wchs");
  const long received = number("packets_received");
  const long sent = number("packets_sent");
  for (int i = 0; i < kHandOvers; ++i) {
    ASSERT_TRUE(release(*lease));
    lease = line.front().lease();
    ASSERT_TRUE(lease);
    line.pop_front();
  }
  // delete, close; the next one lists, proves and writes its record; who is behind it looks again.
  // The rest is room for pings.
  EXPECT_LT(number("packets_received") - received, 12 * kHandOvers + 50);
  EXPECT_LT(number("packets_sent") - sent, 16 * kHandOvers + 50);
  EXPECT_EQ(children().size(), kCrowd - kHandOvers + 1);
  EXPECT_TRUE(
      eventually([&] { return number("watch_count") == static_cast<long>(kCrowd - kHandOvers); }));
}

TEST_F(ZooKeeperQueue, OneWaiterInTheMiddleThatGivesUpWakesOne) {
  auto lease = hold(*a, patient());
  ASSERT_NO_FATAL_FAILURE(queue_up(20, [] { return patient(); }));
  const long received = number("packets_received");
  line.erase(std::next(line.begin(), 10));
  ASSERT_TRUE(queue_is(20));
  EXPECT_LT(number("packets_received") - received, 40);
  EXPECT_TRUE(eventually([&] { return number("watch_count") == 19; }));
  for (Waiting& next : line) {
    EXPECT_FALSE(next.done(0));
    EXPECT_TRUE(release(*lease));
    lease = next.lease();
    ASSERT_TRUE(lease);
  }
}

// The waiter before it acquires a slot between its look at the queue and its watch.
TEST_F(ZooKeeperQueue, ASlotIsNotMissedByWhoWatchesLate) {
  const Request wanted = slots("job", 2);
  auto first = hold(*a, slots("job", 2));
  auto second = hold(*a, slots("job", 2));
  Waiting before(client(), slots("job", 2));
  ASSERT_TRUE(eventually([&] { return number("watch_count") == 1; }));
  std::promise<void> blocked;
  std::promise<void> go;
  auto late = std::async(std::launch::async, [&] {
    bool told = false;
    return client()->acquire(wanted, {.until = soon(), .on_blocked = [&](const LockInfo&) {
                                        if (std::exchange(told, true)) return;
                                        blocked.set_value();
                                        go.get_future().wait();
                                      }});
  });
  blocked.get_future().wait();
  EXPECT_TRUE(release(*first));
  auto third = before.lease();
  ASSERT_TRUE(third);
  ASSERT_TRUE(eventually([&] {
    const auto names = children();
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return nodes().stat("/dlock/job/" + name)->version == 1;  // the record was written anew
    });
  }));
  go.set_value();
  EXPECT_TRUE(eventually([&] { return number("watch_count") >= 1; }));
  EXPECT_TRUE(release(*second));
  EXPECT_TRUE(late.get());
}

TEST_F(ZooKeeperQueue, SlotsWakeNoHerdEither) {
  constexpr std::size_t kWaiters = 60;
  const auto wanted = [] { return request("job", Mode::slots, 3, Millis{60'000}); };
  std::vector<std::unique_ptr<Lease>> leases;
  for (int i = 0; i < 3; ++i) leases.push_back(hold(*a, wanted()));
  ASSERT_NO_FATAL_FAILURE(queue_up(kWaiters, wanted));
  const long received = number("packets_received");
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(release(*leases[static_cast<std::size_t>(i) % 3]));
    leases[static_cast<std::size_t>(i) % 3] = line.front().lease();
    ASSERT_TRUE(leases[static_cast<std::size_t>(i) % 3]);
    line.pop_front();
  }
  EXPECT_LT(number("packets_received") - received, 14 * 20 + 50);
}

TEST_F(ZooKeeperQueue, WhoeverWaitsLongerThanItsTtlGetsAFreshLease) {
  auto lease = hold(*a, request("job"));
  Waiting waiting(client(), request("job", Mode::exclusive, 1, Millis{1'000}));
  ASSERT_TRUE(waiting.blocked());
  EXPECT_FALSE(waiting.done(1'500));
  const Deadline released = Clock::now();
  EXPECT_TRUE(release(*lease));
  lease = waiting.lease();
  ASSERT_TRUE(lease);
  EXPECT_GT(lease->valid_until(), released + Millis{500});
  EXPECT_TRUE(renew(*lease));
}

class ZooKeeperLate : public ZooKeeperQueue, public testing::WithParamInterface<Mode> {};

// Its turn comes twice, and each time its syncs prove too little, since the network has held them
// up for a while.  The first time its node is deleted while it waits for a proof.  One for a slot
// has its number by then, which must not be in the way of the next.
TEST_P(ZooKeeperLate, AWaiterWhoseNodeIsDeletedWhenItsTurnHasComeGetsAFreshLease) {
  constexpr Millis ttl{4'000};
  constexpr Millis kHeldUp = ttl * 45 / 100;
  const bool numbered = GetParam() == Mode::slots;
  // Bytes of requests that name /dlock/job: a list and a part of a proof; a create in between.
  const std::uint64_t at_its_turn = 53 + (numbered ? 100 : 0);
  auto lease = hold(*a, request("job", GetParam()));
  const std::string holder = children().at(0);
  Waiting late(through_proxy(20'000), request("job", GetParam(), 1, ttl));
  ASSERT_TRUE(queue_is(numbered ? 3 : 2));
  std::string first;
  for (const std::string& child : children()) {
    if (child != holder && !child.starts_with("slot-")) first = child;
  }
  Waiting next(client(), request("job", GetParam()));
  ASSERT_TRUE(waiters_are(2));
  ASSERT_TRUE(eventually([&] { return number("watch_count") == 2; }));

  proxy->hold();
  EXPECT_TRUE(release(*lease));
  util::wait_readable(-1, after(Clock::now(), kHeldUp));
  const auto sent = proxy->request_bytes();
  proxy->release();
  ASSERT_TRUE(eventually([&] { return proxy->request_bytes() >= sent + at_its_turn; }));
  nodes().remove("/dlock/job/" + first);
  lease = next.lease();
  ASSERT_TRUE(lease);
  ASSERT_TRUE(waiters_are(1));
  ASSERT_TRUE(eventually([&] { return number("watch_count") == 1; }));

  proxy->hold();
  EXPECT_TRUE(release(*lease));
  util::wait_readable(-1, after(Clock::now(), kHeldUp));
  const Deadline released = Clock::now();
  proxy->release();
  lease = late.lease();
  ASSERT_TRUE(lease);
  EXPECT_GT(lease->valid_until(), released + ttl / 2);
  EXPECT_EQ(children().size(), numbered ? 2u : 1u);
}

INSTANTIATE_TEST_SUITE_P(, ZooKeeperLate, testing::Values(Mode::exclusive, Mode::slots));

TEST_F(ZooKeeperQueue, AWaiterWhoseSessionExpiresQueuesAgainOnce) {
  auto lease = hold(*a, request("job"));
  const std::string holder = children().at(0);
  Waiting waiting(through_proxy(), request("job"));
  ASSERT_TRUE(queue_is(2));
  std::string first;
  for (const std::string& child : children()) first = child == holder ? first : child;
  end_session_of(first);
  ASSERT_TRUE(eventually([&] {
    const auto now = children();
    return now.size() == 2 && std::find(now.begin(), now.end(), first) == now.end();
  }));
  EXPECT_FALSE(waiting.done(0));
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(waiting.lease());
}

TEST_F(ZooKeeperQueue, AWaiterWhoseNodeIsDeletedQueuesAgainAndNeverRunsWithoutOne) {
  auto lease = hold(*a, request("job"));
  const std::string holder = children().at(0);
  Waiting waiting(client(), request("job"));
  ASSERT_TRUE(queue_is(2));
  for (const std::string& child : children()) {
    if (child != holder) nodes().remove("/dlock/job/" + child);
  }
  EXPECT_TRUE(release(*lease));
  lease = waiting.lease();
  ASSERT_TRUE(lease);
  EXPECT_EQ(children().size(), 1u);
  EXPECT_TRUE(renew(*lease));
}

}  // namespace
}  // namespace dlock::test
