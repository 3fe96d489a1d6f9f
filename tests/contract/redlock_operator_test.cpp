// Looking at locks and breaking them, while some servers are down or tell otherwise.
#include <gtest/gtest.h>

#include "redlock_fixture.hpp"

namespace dlock::test {
namespace {

class RedlockOperator : public RedlockTest {
 protected:
  void SetUp() override {
    RedlockTest::SetUp();
    if (IsSkipped()) return;
    a = client();
    b = client();
    lease = hold(*a, held);
    ASSERT_TRUE(lease);
    ASSERT_TRUE(is_held_by(kEach, "job"));
    let_finish(*a);
  }
  Result<bool> break_lock(const std::string& id) {
    return b->force_release("job", id, {"root on ops-1: a test"}, soon());
  }
  std::string port(unsigned node) const { return ':' + std::to_string(servers[node].port()); }
  static bool says(const std::vector<std::string>& remarks, const std::string& one,
                   const std::string& two) {
    return std::any_of(remarks.begin(), remarks.end(), [&](const std::string& remark) {
      return remark.find(one) != std::string::npos && remark.find(two) != std::string::npos;
    });
  }
  /// Each of these servers tells somebody of changes of a key.
  bool watched(Mask mask) const {
    const std::vector<unsigned> nodes = members(mask);
    return std::all_of(nodes.begin(), nodes.end(), [&](unsigned node) {
      return servers[node].command("INFO", "stats").find("tracking_total_keys:0") ==
             std::string::npos;
    });
  }
  /// As the keeper does: until nothing more is heard.
  bool hears_of_the_loss(Deadline until) {
    while (util::wait_readable(lease->event_fd(), until)) {
      const auto renewed = renew(*lease);
      if (renewed) continue;
      EXPECT_EQ(renewed.error().code, Errc::lost) << renewed.error().message;
      EXPECT_NE(renewed.error().message.find("root on ops-1: a test"), std::string::npos)
          << renewed.error().message;
      return true;
    }
    return false;
  }

  Request held = request("job");
  std::unique_ptr<Backend> a;
  std::unique_ptr<Backend> b;
  std::unique_ptr<Lease> lease;
};

// --- force-release

TEST_F(RedlockOperator, ABrokenLockIsGoneFromAllServersAndItsHolderHearsAtOnce) {
  ASSERT_GE(listen_to(*lease), 0);
  const auto broken = break_lock(lease->owner_id());
  ASSERT_TRUE(broken) << broken.error().message;
  EXPECT_TRUE(broken.value());
  Millis took{0};
  took = time_of([&] { EXPECT_TRUE(hears_of_the_loss(in(1'000))); });
  report("holder hears of a force-release", took);
  EXPECT_TRUE(is_held_by(0, "job"));
  EXPECT_TRUE(is_free_for(*b, request("job")));
  const auto again = break_lock(lease->owner_id());
  ASSERT_TRUE(again);
  EXPECT_FALSE(again.value());
}

TEST_F(RedlockOperator, ALockIsBrokenAndItsHolderHearsWhileAMinorityIsDown) {
  for (const Death death : {Death::killed, Death::stopped}) {
    for (const Mask dead : {0b00011U, 0b10001U}) {
      SCOPED_TRACE(in_words(dead) + (death == Death::killed ? " killed" : " stopped"));
      const Request wanted = request("job");
      if (!lease) lease = hold(*a, wanted);
      const std::string id = inspect(*b, "job").holders.at(0).owner.id;
      ASSERT_TRUE(is_held_by(kEach, "job"));
      let_finish(*a);
      ASSERT_GE(listen_to(*lease), 0);
      strike(dead, death);
      const auto broken = break_lock(id);
      ASSERT_TRUE(broken) << broken.error().message;
      EXPECT_TRUE(broken.value());
      const auto took = time_of([&] { EXPECT_TRUE(hears_of_the_loss(in(1'000))); });
      report("holder hears, " + in_words(dead) + " down", took);
      EXPECT_LT(took, here(Millis{1'000}));
      EXPECT_TRUE(is_held_by(0, "job", kEach & ~dead));
      EXPECT_TRUE(is_free_for(*b, request("job")));
      lease.reset();
      heal(dead, death);
      let_finish(*a);
      let_finish(*b);
      flush(kEach);
    }
  }
}

// Who subscribed while the first server was down hears by the others, and by that too once it is
// up.
TEST_F(RedlockOperator, WhoeverListensWhileAMinorityIsDownHearsByTheOthers) {
  strike(0b00011, Death::killed);
  ASSERT_GE(listen_to(*lease), 0);
  EXPECT_TRUE(break_lock(lease->owner_id()).value());
  EXPECT_TRUE(hears_of_the_loss(in(1'000)));
}

TEST_F(RedlockOperator, AMinorityThatCouldBeReachedIsSaidPlainly) {
  for (const Death death : {Death::killed, Death::stopped}) {
    const Mask dead = 0b01101;
    strike(dead, death);
    Result<bool> broken = false;
    const auto took = time_of([&] {
      broken = b->force_release("job", lease->owner_id(), {"root on ops-1: a test"}, in(1'000));
    });
    EXPECT_LT(took, here(Millis{3'000}));
    ASSERT_FALSE(broken);
    EXPECT_EQ(broken.error().code, Errc::unreachable);
    const std::string& message = broken.error().message;
    EXPECT_NE(message.find("broken on 2 of 5 servers only"), std::string::npos) << message;
    for (const unsigned node : members(dead)) {
      EXPECT_NE(message.find(port(node)), std::string::npos) << message;
    }
    heal(dead, death);
    if (death == Death::stopped) break;
    // All have forgotten it now, or it was broken there.
    EXPECT_EQ(renew(*lease).error().code, Errc::lost);
    held = request("job");
    lease = hold(*a, held);
    ASSERT_TRUE(lease);
    ASSERT_TRUE(is_held_by(kEach, "job"));
  }
}

TEST_F(RedlockOperator, AHolderHearsAtOnceOfALockThatIsDeletedByHandOnAMajority) {
  const int events = listen_to(*lease);
  // A renewal returns with the answers of a majority: the other servers watch the key a moment
  // later.
  ASSERT_TRUE(eventually([&] { return renew(*lease).has_value() && watched(0b00111); }));
  for (const unsigned node : members(0b00111)) servers[node].command("DEL", lock_of("job"));
  EXPECT_TRUE(eventually([&] {
    return util::wait_readable(events, in(2'000)) && code_of(renew(*lease)) == Errc::lost;
  }));
}

TEST_F(RedlockOperator, WhoComesNextIsNotBroken) {
  const std::string before = lease->owner_id();
  EXPECT_TRUE(release(*lease));
  lease = hold(*a, request("job"));
  const auto broken = break_lock(before);
  ASSERT_TRUE(broken);
  EXPECT_FALSE(broken.value());
  EXPECT_TRUE(renew_soon(*lease));
}

TEST_F(RedlockOperator, ABrokenLockGoesToWhoeverWaits) {
  Waiting waiting(client(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  ASSERT_TRUE(eventually([&] { return having(names("job").queue) != 0; }));
  EXPECT_TRUE(break_lock(lease->owner_id()).value());
  std::unique_ptr<Lease> next;
  EXPECT_LT(time_of([&] { next = waiting.lease(); }), here(Millis{1'000}));
  ASSERT_TRUE(next);
  EXPECT_EQ(renew(*lease).error().code, Errc::lost);
  EXPECT_TRUE(renew_soon(*next));
}

// --- show and list

TEST_F(RedlockOperator, AllServersAgree) {
  const LockInfo info = inspect(*b, "job");
  ASSERT_EQ(info.holders.size(), 1u);
  EXPECT_EQ(info.holders[0].owner.id, lease->owner_id());
  EXPECT_EQ(info.holders[0].fence, lease->fence());
  EXPECT_EQ(info.nodes_agreeing, 5u);
  EXPECT_EQ(info.nodes_total, 5u);
  EXPECT_TRUE(info.remarks.empty()) << info.remarks.front();
}

TEST_F(RedlockOperator, ServersThatAreDownOrTellOtherwiseAreNamed) {
  flush(0b00001);
  put_foreign(0b00001);
  servers[1].command("DEL", lock_of("job"));
  strike(0b00100, Death::killed);
  const LockInfo info = inspect(*b, "job");
  ASSERT_EQ(info.holders.size(), 1u);
  EXPECT_EQ(info.holders[0].owner.id, lease->owner_id());
  EXPECT_EQ(info.nodes_agreeing, 2u);
  EXPECT_EQ(info.nodes_total, 5u);
  ASSERT_EQ(info.remarks.size(), 3u);
  EXPECT_TRUE(says(info.remarks, port(0), "held by"));
  EXPECT_TRUE(says(info.remarks, port(1), "free there"));
  EXPECT_TRUE(says(info.remarks, port(2), "refused"));
}

TEST_F(RedlockOperator, AFreeLockOfWhichSomethingIsLeftIsFreeAndThatIsSaid) {
  EXPECT_TRUE(release(*lease));
  put_foreign(0b01000);
  const LockInfo info = inspect(*b, "job");
  EXPECT_TRUE(info.holders.empty());
  EXPECT_EQ(info.nodes_agreeing, 4u);
  EXPECT_TRUE(says(info.remarks, port(3), "held by"));
  EXPECT_TRUE(b->list("", soon()).value().empty());
}

TEST_F(RedlockOperator, ALookTakesLittleTimeWhileAMinorityIsSilent) {
  strike(0b00011, Death::stopped);
  LockInfo info;
  const auto took = time_of([&] { info = inspect(*b, "job"); });
  report("show, two servers stopped", took);
  EXPECT_LT(took, here(Millis{2'500}));
  EXPECT_EQ(info.holders.size(), 1u);
  EXPECT_EQ(info.nodes_agreeing, 3u);
  EXPECT_EQ(info.remarks.size(), 2u);
  std::vector<LockInfo> all;
  EXPECT_LT(time_of([&] { all = b->list("", soon()).value(); }), here(Millis{2'500}));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].nodes_agreeing, 3u);
}

// The end of a client, as of `dlock show`, waits for nobody either.
TEST_F(RedlockOperator, AClientThatHasLookedEndsAtOnceWhileAMinorityIsSilent) {
  strike(0b00011, Death::stopped);
  inspect(*b, "job");
  const auto took = time_of([&] { b.reset(); });
  report("the client ends, two servers stopped", took);
  EXPECT_LT(took, here(Millis{500}));
}

TEST_F(RedlockOperator, WithoutAMajorityNothingIsSaid) {
  for (const Death death : {Death::killed, Death::stopped}) {
    const Mask dead = 0b10110;
    strike(dead, death);
    const auto took = time_of([&] {
      const auto info = b->inspect("job", in(1'000));
      ASSERT_FALSE(info);
      expect_names(info.error(), dead, servers);
      const auto all = b->list("", in(2'000));
      ASSERT_FALSE(all);
      expect_names(all.error(), dead, servers);
    });
    EXPECT_LT(took, here(Millis{5'000}));
    heal(dead, death);
  }
}

TEST_F(RedlockOperator, AListIsTheSameFromAnyMajority) {
  auto other = hold(*a, shared("a-reader"));
  auto third = hold(*b, shared("a-reader"));
  auto slot = hold(*a, slots("slot", 2));
  let_finish(*a);
  let_finish(*b);
  for (const Mask dead : {0U, 0b00011U, 0b11000U}) {
    strike(dead, Death::stopped);
    const auto all = client()->list("", in(2'000));
    ASSERT_TRUE(all) << all.error().message;
    std::vector<std::string> keys;
    for (const LockInfo& info : all.value()) keys.push_back(info.key);
    EXPECT_EQ(keys, (std::vector<std::string>{"a-reader", "job", "slot"}));
    EXPECT_EQ(all.value()[0].holders.size(), 2u);
    EXPECT_EQ(all.value()[0].mode, Mode::shared);
    EXPECT_EQ(all.value()[2].slots, 2u);
    for (const LockInfo& info : all.value()) {
      EXPECT_EQ(info.nodes_agreeing, 5u - static_cast<unsigned>(std::popcount(dead)));
    }
    heal(dead, Death::stopped);
  }
}

TEST_F(RedlockOperator, AWaiterIsShownWhereverItWaits) {
  const Request wanted = request("job");
  Waiting waiting(client(), wanted);
  ASSERT_TRUE(waiting.blocked());
  ASSERT_TRUE(eventually([&] { return inspect(*b, "job").waiters->size() == 1; }));
  const LockInfo info = inspect(*b, "job");
  EXPECT_EQ(info.waiters->at(0).owner.id, wanted.owner.id);
  EXPECT_EQ(info.nodes_agreeing, 5u);
  EXPECT_TRUE(info.remarks.empty());
}

}  // namespace
}  // namespace dlock::test
