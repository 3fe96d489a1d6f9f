// Any majority of the servers will do, and no minority.
#include <gtest/gtest.h>

#include "redlock_fixture.hpp"

namespace dlock::test {
namespace {

// One that is silent costs 200 ms; many times that, for machines that are busy.
constexpr Millis kBounded{4'500};

class RedlockMasks : public RedlockTest {
 protected:
  static std::string key_for(Mask dead) { return "job" + std::to_string(dead); }

  template <class Ports>
  void expect_acquire(Backend& client, Mask dead, const Ports& ports) {
    SCOPED_TRACE("dead: " + in_words(dead));
    LeaseResult lease = Error{Errc::invalid, ""};
    EXPECT_LT(time_of([&] { lease = try_once(client, request(key_for(dead))); }), kBounded);
    if (!is_majority(kEach & ~dead)) {
      ASSERT_FALSE(lease);
      expect_names(lease.error(), dead, ports);
      return;
    }
    ASSERT_TRUE(lease) << lease.error().message;
    EXPECT_GT((*lease)->valid_until(), Clock::now());
    const auto renewed = renew_soon(**lease);
    EXPECT_TRUE(renewed) << renewed.error().message;
    const auto released = release(**lease);
    EXPECT_TRUE(released) << released.error().message;
  }

  // Where servers are silent it takes 1.4 s to be refused: some cases stand for the rest, which are
  // tried with servers that are killed.
  static bool is_too_slow(Mask dead) {
    return !is_majority(kEach & ~dead) && dead != 0b00111 && dead != 0b11010 && dead != kEach;
  }

  // All are there when it is granted.
  template <class Ports>
  void expect_renewals(Backend& client, Mask dead, Death death, const Ports& ports) {
    SCOPED_TRACE("dead: " + in_words(dead));
    const std::string key = key_for(dead);
    auto lease = hold(client, request(key));
    ASSERT_TRUE(lease);
    ASSERT_TRUE(is_held_by(kEach, key));
    strike(dead, death);
    for (int i = 0; i < 2; ++i) {
      const Deadline before = lease->valid_until();
      Result<void> renewed;
      const bool enough = is_majority(kEach & ~dead);
      EXPECT_LT(time_of([&] { renewed = enough ? renew_soon(*lease) : renew(*lease); }), kBounded);
      if (enough) {
        EXPECT_TRUE(renewed) << renewed.error().message;
        EXPECT_GT(lease->valid_until(), before);
      } else {
        ASSERT_FALSE(renewed);
        expect_names(renewed.error(), dead, ports);
        EXPECT_EQ(lease->valid_until(), before);
      }
    }
    if (is_majority(kEach & ~dead)) {
      Result<void> released;
      EXPECT_LT(time_of([&] { released = release(*lease); }), kBounded);
      EXPECT_TRUE(released) << released.error().message;
      heal(dead, death);
      return;
    }
    heal(dead, death);
    EXPECT_TRUE(eventually([&] { return renew(*lease).has_value(); }));  // the data are there
    const auto released = release(*lease);
    EXPECT_TRUE(released) << released.error().message;
  }
};

// One server changes at a time (a Gray code).
TEST_F(RedlockMasks, WhileAMajorityIsUpTheLockIsGrantedWhoeverIsKilled) {
  auto one = client();
  Mask dead = 0;
  for (Mask step = 1; step <= kEach + 1; ++step) {
    expect_acquire(*one, dead, servers);
    const Mask next = (step ^ step >> 1) & kEach;
    strike(next & ~dead, Death::killed);
    heal(dead & ~next, Death::killed);
    dead = next;
  }
  EXPECT_TRUE(only_counters_are_left(kEach & ~dead));
}

TEST_F(RedlockMasks, WhileAMajorityAnswersTheLockIsGrantedWhoeverIsStopped) {
  for (Mask dead = 0; dead <= kEach; ++dead) {
    if (is_too_slow(dead)) continue;
    auto one = client();
    strike(dead, Death::stopped);
    expect_acquire(*one, dead, servers);
    heal(dead, Death::stopped);
    let_finish(*one);
    EXPECT_TRUE(only_counters_are_left()) << in_words(dead);
  }
}

TEST_F(RedlockMasks, AHolderKeepsItsLockWhileAMajorityIsThereWhoeverIsCutOff) {
  put_proxies();
  auto one = through_proxies();
  for (Mask dead = 0; dead <= kEach; ++dead) {
    expect_renewals(*one, dead, Death::cut, proxies);
    const Mask freed = is_majority(kEach & ~dead) ? kEach & ~dead : kEach;
    EXPECT_TRUE(is_held_by(0, key_for(dead), freed)) << in_words(dead);
  }
}

TEST_F(RedlockMasks, AHolderKeepsItsLockWhileAMajorityAnswersWhoeverIsStopped) {
  for (Mask dead = 0; dead <= kEach; ++dead) {
    if (is_too_slow(dead)) continue;
    auto one = client();
    expect_renewals(*one, dead, Death::stopped, servers);
    let_finish(*one);
    EXPECT_TRUE(only_counters_are_left()) << in_words(dead);
  }
}

TEST_F(RedlockMasks, AHolderOfWhichTheMajorityIsKilledIsToldInTimeAndThenThatItIsLost) {
  auto one = client();
  auto lease = hold(*one, request("job"));
  ASSERT_TRUE(is_held_by(kEach, "job"));
  let_finish(*one);
  const Mask dead = 0b01101;
  strike(dead, Death::killed);
  for (int i = 0; i < 2; ++i) {
    Result<void> renewed;
    EXPECT_LT(time_of([&] { renewed = renew(*lease); }), kBounded);
    ASSERT_FALSE(renewed);
    expect_names(renewed.error(), dead, servers);
  }
  heal(dead, Death::killed);
  const auto renewed = renew(*lease);
  ASSERT_FALSE(renewed);
  EXPECT_EQ(renewed.error().code, Errc::lost) << renewed.error().message;
}

// --- how long that takes

class RedlockSlow : public RedlockTest {
 protected:
  // For this ttl a server is waited for no longer than that.
  static constexpr Millis kTimeout{200};
  // On a machine that is busy; two timeouts in a row are more.
  static constexpr Millis kSlack{150};
};

TEST_F(RedlockSlow, TwoStoppedServersCostATimeoutAtMostAndNothingOnceKnown) {
  teach_scripts();
  for (const Mask slow : {0b00011U, 0b11000U, 0b01010U}) {
    SCOPED_TRACE("stopped: " + in_words(slow));
    auto one = client();
    Millis healthy{1'000};
    for (int i = 0; i < 5; ++i) {
      healthy = std::min(healthy, time_of([&] { is_free_for(*one, request("healthy")); }));
    }
    auto held = hold(*one, request("held"));
    ASSERT_TRUE(is_held_by(kEach, "held"));
    let_finish(*one);
    strike(slow, Death::stopped);

    const auto first_renewal = time_of([&] { EXPECT_TRUE(renew(*held)); });
    auto fresh = client();
    std::unique_ptr<Lease> lease;
    const auto first = time_of([&] { lease = hold(*fresh, request("job")); });
    ASSERT_TRUE(lease);
    const auto first_release = time_of([&] { EXPECT_TRUE(release(*lease)); });
    EXPECT_LT(first + first_release, kTimeout + kSlack);
    EXPECT_LT(first_renewal, kTimeout + kSlack);

    // By now this client knows.
    Millis again{1'000};
    Millis renewal{1'000};
    Millis again_released{1'000};
    for (int i = 0; i < 5; ++i) {
      again = std::min(again, time_of([&] { lease = hold(*fresh, request("job")); }));
      ASSERT_TRUE(lease);
      renewal = std::min(renewal, time_of([&] { EXPECT_TRUE(renew(*lease)); }));
      again_released = std::min(again_released, time_of([&] { EXPECT_TRUE(release(*lease)); }));
    }
    report("acquire and release, five servers up", healthy);
    report("two stopped, first contact: acquire", first);
    report("two stopped, first contact: renew", first_renewal);
    report("two stopped, first contact: release", first_release);
    report("two stopped, known: acquire", again);
    report("two stopped, known: renew", renewal);
    report("two stopped, known: release", again_released);
    EXPECT_LT(again, Millis{50});
    EXPECT_LT(renewal, Millis{50});
    EXPECT_LT(again_released, Millis{50});

    heal(slow, Death::stopped);
    EXPECT_TRUE(renew_soon(*held));
    EXPECT_TRUE(release(*held));
    EXPECT_TRUE(only_counters_are_left());
    let_finish(*fresh);
    EXPECT_TRUE(only_counters_are_left());
  }
}

TEST_F(RedlockSlow, AServerThatWasStoppedIsWaitedForAgainOnceItAnswers) {
  auto one = client();
  ASSERT_TRUE(is_free_for(*one, request("job")));
  strike(0b00011, Death::stopped);
  ASSERT_TRUE(is_free_for(*one, request("job")));
  heal(0b00011, Death::stopped);
  // So that these two are needed.
  strike(0b11000, Death::stopped);
  EXPECT_TRUE(eventually([&] { return is_free_for(*one, request("job")); }));
  heal(0b11000, Death::stopped);
  EXPECT_TRUE(only_counters_are_left());
}

}  // namespace
}  // namespace dlock::test
