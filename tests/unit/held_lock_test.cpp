// When the lock of a run learns that it is lost.
#include "engine/held_lock.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <atomic>

#include "util/poll.hpp"

namespace dlock {
namespace {

// What the service has, and what it is asked.
struct Service {
  Fd event{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  bool has_event = true;
  std::atomic<bool> held{true};
  std::atomic<int> renewals{0};
  Deadline valid_until = kNever;
  int releases = 0;
};

class FakeLease final : public Lease {
 public:
  explicit FakeLease(Service& service) : service_(service) {}

  const std::string& owner_id() const override { return id_; }
  std::optional<std::uint64_t> fence() const override { return std::nullopt; }
  Deadline valid_until() const override { return service_.valid_until; }
  Result<void> renew(Deadline, Cancel) override {
    ++service_.renewals;
    drain();
    if (service_.held) return {};
    return Error{Errc::lost, "gone"};
  }
  int event_fd() override { return service_.has_event ? service_.event.get() : -1; }
  bool has_news() override {
    if (service_.held) drain();
    return !service_.held;
  }
  Result<void> end_command(Deadline, Deadline, Cancel) override { return {}; }
  Result<void> release(Deadline, Cancel) override {
    ++service_.releases;
    return {};
  }

 private:
  void drain() {
    eventfd_t drained = 0;
    (void)eventfd_read(service_.event.get(), &drained);
  }

  Service& service_;
  const std::string id_;
};

class HeldLockTest : public testing::Test {
 protected:
  HeldLock hold() {
    return HeldLock(std::make_unique<FakeLease>(service_),
                    {.renewal = {.key = "job", .ttl = Millis{30'000}, .margins = {}},
                     .network_timeout = {},
                     .ends_on = Traits::EndsOn::ttl},
                    end_);
  }
  template <class Condition>
  bool wait_until(Condition condition) const {
    while (!condition() && Clock::now() < give_up_) util::poll({}, after(Clock::now(), Millis{5}));
    return condition();
  }
  Service service_;
  LeaseEnd end_;
  const Deadline give_up_ = after(Clock::now(), Millis{20'000});
};

TEST_F(HeldLockTest, ALossThatTheServiceTellsRightAfterTheGrantIsHeardOf) {
  HeldLock lock = hold();
  const Deadline now = lock.granted_at();  // the renewer would not start for a second
  EXPECT_FALSE(lock.check(now));
  eventfd_write(service_.event.get(), 1);
  EXPECT_FALSE(lock.check(now));
  EXPECT_EQ(service_.renewals, 0) << "what is no news is asked about";
  service_.held = false;
  eventfd_write(service_.event.get(), 1);
  EXPECT_TRUE(util::wait_readable(lock.lost_fd(), Deadline{}));
  if (!lock.check(now)) {  // which starts the renewer, and does not wait for it
    EXPECT_TRUE(util::wait_readable(lock.lost_fd(), after(Clock::now(), Millis{20'000})));
  }
  ASSERT_TRUE(lock.check(now));
  EXPECT_EQ(lock.check(now)->message, "gone");
}

// The grant was asked for long before it was answered.
TEST_F(HeldLockTest, AGrantThatWasAnsweredLateIsRenewedBeforeItCountsAsLost) {
  service_.valid_until = after(Clock::now(), Millis{1'600});  // of 30 s
  HeldLock lock = hold();
  EXPECT_LT(lock.next_deadline(), after(lock.granted_at(), Millis{900}));
  EXPECT_FALSE(lock.check(lock.next_deadline()));
  EXPECT_TRUE(wait_until([&] { return service_.renewals == 1; }));
}

TEST_F(HeldLockTest, WhatIsNoNewsIsNotAskedAboutLaterEither) {
  HeldLock lock = hold();
  EXPECT_FALSE(lock.check(after(lock.granted_at(), Millis{1'000})));  // starts the renewer
  ASSERT_TRUE(wait_until([&] { return service_.renewals == 1; }));
  for (int i = 0; i < 3; ++i) {
    eventfd_write(service_.event.get(), 1);
    ASSERT_TRUE(wait_until([&] { return !util::wait_readable(service_.event.get(), Deadline{}); }));
  }
  EXPECT_EQ(service_.renewals, 1);
  service_.held = false;
  eventfd_write(service_.event.get(), 1);
  EXPECT_TRUE(util::wait_readable(lock.lost_fd(), give_up_));
}

TEST_F(HeldLockTest, AServiceThatCannotTellIsAskedEachSecond) {
  service_.has_event = false;
  HeldLock lock = hold();
  EXPECT_FALSE(lock.check(after(lock.granted_at(), Millis{1'000})));  // starts the renewer
  EXPECT_TRUE(wait_until([&] { return service_.renewals >= 3; }));
  service_.held = false;
  EXPECT_TRUE(util::wait_readable(lock.lost_fd(), give_up_));
  EXPECT_TRUE(lock.check(Clock::now()));
}

// Nothing tells of a directory that was replaced above a lock file.
TEST_F(HeldLockTest, ALeaseWithoutAnEndIsLookedAtNowAndThen) {
  HeldLock lock(
      std::make_unique<FakeLease>(service_),
      {.renewal = {.key = "job", .ttl = Millis{30'000}, .margins = {}, .look = Millis{20}},
       .network_timeout = {},
       .ends_on = Traits::EndsOn::process_exit},
      end_);
  EXPECT_FALSE(lock.check(after(lock.granted_at(), Millis{1'000})));  // starts the renewer
  EXPECT_TRUE(wait_until([&] { return service_.renewals >= 3; }));
  service_.held = false;
  EXPECT_TRUE(util::wait_readable(lock.lost_fd(), give_up_));
  EXPECT_TRUE(lock.check(Clock::now()));
}

// There may be something left that keeps others out.
TEST_F(HeldLockTest, WhatIsLostIsReleasedWhenTheJobHasEnded) {
  HeldLock lock = hold();
  lock.start_renewing();
  service_.held = false;
  eventfd_write(service_.event.get(), 1);
  EXPECT_TRUE(util::wait_readable(lock.lost_fd(), after(Clock::now(), Millis{20'000})));
  ASSERT_TRUE(lock.check(Clock::now()));
  EXPECT_TRUE(lock.release(Cancel()));
  EXPECT_EQ(service_.releases, 1);
}

// While another key is waited for, nobody looks at this one.
TEST_F(HeldLockTest, ARenewerThatIsToStartLaterStartsAtNewsToo) {
  HeldLock lock = hold();
  lock.start_renewing();
  EXPECT_EQ(service_.renewals, 0);
  service_.held = false;
  eventfd_write(service_.event.get(), 1);
  EXPECT_TRUE(util::wait_readable(lock.lost_fd(), after(Clock::now(), Millis{20'000})));
  ASSERT_TRUE(lock.check(Clock::now()));
}

TEST_F(HeldLockTest, ALockThatIsGivenBackHasNoEndAnyMore) {
  service_.valid_until = after(Clock::now(), Millis{30'000});
  {
    HeldLock lock = hold();
    EXPECT_EQ(end_.get(), service_.valid_until);
    lock.start_renewing();
    (void)lock.release(Cancel());
  }
  EXPECT_EQ(end_.get(), kNever);
}

}  // namespace
}  // namespace dlock
