// The numbers of slots: nodes beside the queue, which outlive a place that is taken away.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <set>

#include "zookeeper_fixture.hpp"

namespace dlock::test {
namespace {

using Names = std::vector<std::string>;

class ZooKeeperSlots : public ZooKeeperTest {
 protected:
  void SetUp() override {
    ZooKeeperTest::SetUp();
    if (server) nodes().create_all("/dlock/job");
  }
  // The places in the queue, in its order, or the numbers.
  Names places() { return those(false); }
  Names numbers() { return those(true); }
  bool breaks(const Lease& lease) {
    auto done = b->force_release("job", lease.owner_id(), {"test"}, soon());
    return done && *done;
  }

 private:
  Names those(bool numbered) {
    Names all = children();
    std::erase_if(all, [&](const auto& name) { return name.starts_with("slot-") != numbered; });
    const auto last = [](const std::string& name) { return name.substr(name.rfind('-')); };
    std::sort(all.begin(), all.end(),
              [&](const auto& x, const auto& y) { return last(x) < last(y); });
    return all;
  }
};

TEST_F(ZooKeeperSlots, ANumberIsANodeOfTheSameSessionThatNamesItsHolder) {
  auto one = hold(*a, slots("job", 3));
  auto two = hold(*a, slots("job", 3));
  EXPECT_EQ(numbers(), (Names{"slot-1", "slot-2"}));
  EXPECT_EQ(nodes().data("/dlock/job/slot-2"), two->owner_id());
  EXPECT_EQ(session_of("slot-2"), session_of(places().at(1)));
  const LockInfo info = inspect(*b, "job");
  EXPECT_TRUE(info.remarks.empty());
  EXPECT_EQ(b->list("", soon()).value().at(0).holders.at(1).slot, 2u);
  EXPECT_TRUE(release(*one));
  EXPECT_EQ(numbers(), Names{"slot-2"});
  EXPECT_TRUE(release(*two));
  EXPECT_TRUE(children().empty());
}

TEST_F(ZooKeeperSlots, ANumberCostsOneRequest) {
  const auto received = [&] { return server->monitored("zk_packets_received"); };
  const auto requests_of = [&](const auto& what) {
    const long first = received();
    const long before = received();
    what();
    return received() - before - (before - first);  // without the asking itself
  };
  std::unique_ptr<Lease> lease;
  // Session; create and list; the number.
  EXPECT_LE(requests_of([&] { lease = hold(*a, slots("job", 3)); }), 4);
  EXPECT_LE(requests_of([&] { EXPECT_TRUE(release(*lease)); }), 2);
}

TEST_F(ZooKeeperSlots, ManyAtOnceHaveTheLowestNumbers) {
  constexpr unsigned kHolders = 20;
  std::list<Waiting> many;
  for (unsigned i = 0; i < kHolders; ++i) many.emplace_back(client(), slots("job", 2 * kHolders));
  std::set<unsigned> got;
  std::vector<std::unique_ptr<Lease>> leases;
  for (Waiting& one : many) {
    leases.push_back(one.lease());
    ASSERT_TRUE(leases.back());
    got.insert(leases.back()->slot().value_or(0));
  }
  EXPECT_EQ(got.size(), kHolders);
  EXPECT_EQ(*got.begin(), 1u);
  EXPECT_EQ(*got.rbegin(), kHolders);
}

TEST_F(ZooKeeperSlots, TheNumberOfABrokenHolderIsFreeWhenItsCommandHasEnded) {
  for (const bool released : {false, true}) {
    auto lease = hold(*a, slots("job", 1));
    ASSERT_TRUE(breaks(*lease));
    EXPECT_EQ(numbers(), Names{"slot-1"});
    EXPECT_EQ(code_of(try_once(*b, slots("job", 1))), Errc::busy);
    EXPECT_EQ(children(), Names{"slot-1"});
    Waiting given_up(client(), slots("job", 1));
    ASSERT_TRUE(queue_is(2));
    given_up.cancel();
    EXPECT_EQ(code_of(given_up.result()), Errc::cancelled);
    EXPECT_EQ(children(), Names{"slot-1"});
    Waiting waiting(client(), slots("job", 1));
    ASSERT_TRUE(queue_is(2));
    EXPECT_EQ(renew(*lease).error().code, Errc::lost);
    EXPECT_FALSE(waiting.done(50));
    if (released) {
      EXPECT_EQ(code_of(release(*lease)), Errc::lost);
    } else {
      lease.reset();
    }
    lease = waiting.lease();
    ASSERT_TRUE(lease);
    EXPECT_EQ(lease->slot(), 1u);
    EXPECT_TRUE(renew(*lease));
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(queue_is(0));
  }
}

// Several wait for numbers that broken holders have, and others wait behind them.
TEST_F(ZooKeeperSlots, NobodyMissesANumberThatBecomesFree) {
  auto one = hold(*a, slots("job", 2));
  auto two = hold(*a, slots("job", 2));
  std::list<Waiting> line;
  for (std::size_t i = 0; i < 4; ++i) {
    line.emplace_back(client(), slots("job", 2));
    ASSERT_TRUE(queue_is(5 + i));
  }
  ASSERT_TRUE(breaks(*one));
  ASSERT_TRUE(breaks(*two));
  EXPECT_FALSE(line.front().done(50));
  for (auto* lease : {&one, &two}) {
    EXPECT_FALSE(renew(**lease));
    lease->reset();
  }
  std::vector<std::unique_ptr<Lease>> leases;
  std::set<unsigned> got;
  for (int i = 0; i < 2; ++i, line.pop_front()) {
    leases.push_back(line.front().lease());
    ASSERT_TRUE(leases.back());
    got.insert(leases.back()->slot().value_or(0));
  }
  EXPECT_EQ(got, (std::set<unsigned>{1, 2}));
  for (auto& lease : leases) EXPECT_TRUE(release(*lease));
  for (Waiting& waiting : line) {
    auto lease = waiting.lease();
    ASSERT_TRUE(lease);
    EXPECT_TRUE(release(*lease));
  }
  EXPECT_TRUE(queue_is(0));
}

// One of a session that is not ours, with our own id or without.
TEST_F(ZooKeeperSlots, ANumberOfAnotherSessionIsNotOurs) {
  ZooKeeperClient other(server->port());
  const Request wanted = slots("job", 2);
  other.create("/dlock/job/slot-1", wanted.owner.id, Znode::ephemeral);
  auto lease = hold(*a, wanted);
  EXPECT_EQ(lease->slot(), 2u);
  Waiting waiting(client(), slots("job", 2));
  ASSERT_TRUE(queue_is(4));
  EXPECT_FALSE(waiting.done(50));
  other.remove("/dlock/job/slot-1");
  auto next = waiting.lease();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->slot(), 1u);
  EXPECT_TRUE(release(*lease));
  EXPECT_EQ(numbers(), Names{"slot-1"});
}

// As one has that is about to take its number, which is left to it.
TEST_F(ZooKeeperSlots, AHolderWithoutANumberIsAHolder) {
  ZooKeeperClient other(server->port());
  other.create("/dlock/job/_c_01234567-0123-0123-0123-0123456789ab-slots-2-lock-", "",
               Znode::ephemeral_sequential);
  auto lease = hold(*a, slots("job", 2));
  EXPECT_EQ(lease->slot(), 2u);
  EXPECT_EQ(code_of(try_once(*b, slots("job", 2))), Errc::busy);
  const LockInfo info = inspect(*b, "job");
  ASSERT_EQ(info.holders.size(), 2u);
  EXPECT_EQ(info.holders[0].slot, std::nullopt);
  EXPECT_EQ(info.holders[1].slot, 2u);
  EXPECT_TRUE(release(*lease));
}

TEST_F(ZooKeeperSlots, AWaiterForANumberWhosePlaceIsDeletedQueuesAgain) {
  ZooKeeperClient other(server->port());
  other.create("/dlock/job/slot-1", "", Znode::ephemeral);
  Waiting waiting(client(), slots("job", 1));
  ASSERT_TRUE(eventually([&] { return places().size() == 1; }));
  const std::string first = places().at(0);
  nodes().remove("/dlock/job/" + first);
  ASSERT_TRUE(eventually([&] { return places().size() == 1 && places().at(0) != first; }));
  other.remove("/dlock/job/slot-1");
  auto lease = waiting.lease();
  ASSERT_TRUE(lease);
  EXPECT_TRUE(renew(*lease));
  EXPECT_EQ(children().size(), 2u);
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(queue_is(0));
}

TEST_F(ZooKeeperSlots, ANumberWhoseReplyIsLostIsTakenOnce) {
  proxy->lose_reply_to("slot-1");
  auto lease = hold(*through_proxy(), slots("job", 2));
  ASSERT_TRUE(lease);
  EXPECT_EQ(proxy->lost_replies(), 1);
  proxy->pass();
  EXPECT_EQ(lease->slot(), 1u);
  EXPECT_EQ(numbers(), Names{"slot-1"});
  EXPECT_EQ(places().size(), 1u);
  EXPECT_TRUE(renew(*lease));
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(queue_is(0));
}

// Two connections are lost: one with the answer to the create, the next with the last request of
// the client, the end of the session.
TEST_F(ZooKeeperSlots, WhoeverGivesUpWithANumberInDoubtLeavesNothing) {
  proxy->lose_reply_to("slot-1");
  proxy->delay_requests(Millis{500});
  Waiting waiting(through_proxy(), slots("job", 2));
  ASSERT_TRUE(eventually([&] { return proxy->lost_replies() == 1; }));
  EXPECT_EQ(children().size(), 2u);
  waiting.cancel();
  EXPECT_EQ(code_of(waiting.result()), Errc::cancelled);
  proxy->cut();
  proxy->pass();
  EXPECT_TRUE(queue_is(0));
}

// A release that was carried out, but not confirmed, is repeated when another client has the
// number.
TEST_F(ZooKeeperSlots, AReleaseThatIsRepeatedTakesTheNumberFromNobody) {
  auto lease = hold(*through_proxy(), slots("job", 1));
  Waiting waiting(client(), slots("job", 1));
  ASSERT_TRUE(waiters_are(1));
  proxy->hold();
  EXPECT_EQ(code_of(lease->release(in(300), Cancel())), Errc::unreachable);
  auto next = waiting.lease();
  ASSERT_TRUE(next);
  proxy->pass();
  const auto again = release(*lease);
  EXPECT_TRUE(again) << again.error().message;
  EXPECT_EQ(numbers(), Names{"slot-1"});
  EXPECT_EQ(children().size(), 2u);
  EXPECT_TRUE(renew(*next));
  EXPECT_TRUE(release(*next));
}

TEST_F(ZooKeeperSlots, AReleaseWithoutItsNumberFreesThePlace) {
  auto lease = hold(*a, slots("job", 1));
  nodes().remove("/dlock/job/slot-1");
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(queue_is(0));
}

TEST_F(ZooKeeperSlots, ANumberBelongsToItsUser) {
  nodes().remove("/dlock/job");
  const std::string joe = "joe:secret";
  auto lease = hold(*client({.auth = joe}), slots("job", 2));
  ASSERT_TRUE(lease);
  ZooKeeperClient oracle(server->port());
  oracle.add_digest(joe);
  const std::string acl = oracle.acl("/dlock/job/slot-1");
  EXPECT_TRUE(acl.starts_with("digest:joe:") && acl.ends_with(":cdrwa")) << acl;
  EXPECT_TRUE(release(*lease));
}

}  // namespace
}  // namespace dlock::test
