// The order of the steps, and what the caller is told.
#include "core/acquire_loop.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <variant>

namespace dlock {
namespace {

class NoLease final : public Lease {
 public:
  const std::string& owner_id() const override { return id_; }
  std::optional<std::uint64_t> fence() const override { return std::nullopt; }
  Deadline valid_until() const override { return kNever; }
  Result<void> renew(Deadline, Cancel) override { return {}; }
  int event_fd() override { return -1; }
  Result<void> end_command(Deadline, Deadline, Cancel) override { return {}; }
  Result<void> release(Deadline, Cancel) override { return {}; }

 private:
  const std::string id_;
};

struct Granted {};
struct Held {  // as it is seen, and by how many
  std::string seen;
  int holders = 1;
};
using Answer = std::variant<Granted, Held, Error>;

// Does what the script says, and writes down what it was asked.
class ScriptedSteps final : public AcquireSteps {
 public:
  std::deque<Answer> attempts;
  std::deque<Result<bool>> waits;  // none is left: the lock may be free
  Result<void> left;
  std::string asked;

  Result<Attempt> attempt() override {
    asked += "attempt ";
    Answer answer = std::move(attempts.front());
    attempts.pop_front();
    if (auto* error = std::get_if<Error>(&answer)) return std::move(*error);
    if (std::holds_alternative<Granted>(answer)) return Attempt{std::make_unique<NoLease>(), {}};
    held_ = std::get<Held>(answer);
    return Attempt{nullptr, held_.seen};
  }
  Result<LockInfo> describe() override {
    asked += "describe ";
    LockInfo info{.key = held_.seen};
    info.holders.resize(static_cast<std::size_t>(held_.holders));
    return info;
  }
  Result<bool> wait(Deadline) override {
    asked += "wait ";
    if (waits.empty()) return true;
    Result<bool> answer = std::move(waits.front());
    waits.pop_front();
    return answer;
  }
  void recover(const Error& why) override { asked += "recover:" + why.message + ' '; }
  Result<void> leave() override {
    asked += "leave ";
    return left;
  }

 private:
  Held held_;
};

class AcquireLoopTest : public testing::Test {
 protected:
  Result<std::unique_ptr<Lease>> run() {
    Patience patience(wait, Millis{60'000}, request.key);
    return acquire_loop(steps, request, wait, patience);
  }

  ScriptedSteps steps;
  Request request{.key = "job"};
  Wait wait{.until = after(Clock::now(), Millis{60'000})};
};

const Error kGone{Errc::unreachable, "gone"};

TEST_F(AcquireLoopTest, AFreeLockTakesOneAttempt) {
  steps.attempts = {Granted{}};
  EXPECT_TRUE(run());
  EXPECT_EQ(steps.asked, "attempt ");
}

TEST_F(AcquireLoopTest, AHeldLockIsWaitedFor) {
  steps.attempts = {Held{"a"}, Held{"a"}, Granted{}};
  EXPECT_TRUE(run());
  EXPECT_EQ(steps.asked, "attempt wait attempt wait attempt ");
}

TEST_F(AcquireLoopTest, TheCallerIsToldOfEachChange) {
  std::string told;
  wait.on_blocked = [&](const LockInfo& info) { told += info.key + ' '; };
  steps.attempts = {Held{"a"}, Held{"a"}, Held{"b"}, Held{"freed", 0}, Held{"b"}, Granted{}};
  EXPECT_TRUE(run());
  EXPECT_EQ(told, "a b ");
}

TEST_F(AcquireLoopTest, TheCallerIsToldOnceIfItSaysSo) {
  std::string told;
  wait.once = true;
  wait.on_blocked = [&](const LockInfo& info) { told += info.key + ' '; };
  steps.attempts = {Held{"freed", 0}, Held{"a"}, Held{"b"}, Granted{}};
  EXPECT_TRUE(run());
  EXPECT_EQ(told, "a ");
}

TEST_F(AcquireLoopTest, WhoDoesNotWaitTriesOnceAndIsTold) {
  std::string told;
  wait.until = Clock::now();
  wait.on_blocked = [&](const LockInfo& info) { told += info.key + ' '; };
  steps.attempts = {Held{"a"}};
  const auto lease = run();
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().code, Errc::busy);
  EXPECT_EQ(told, "a ");
  EXPECT_EQ(steps.asked, "attempt describe leave ");
}

TEST_F(AcquireLoopTest, TheWaitIsOver) {
  steps.attempts = {Held{"a"}};
  steps.waits = {false};
  const auto lease = run();
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().code, Errc::busy);
  EXPECT_TRUE(steps.asked.ends_with("leave "));
}

TEST_F(AcquireLoopTest, BusyPromisesThatNothingIsLeft) {
  steps.attempts = {Held{"a"}};
  steps.waits = {false};
  steps.left = kGone;
  const auto lease = run();
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().code, Errc::unreachable);
}

TEST_F(AcquireLoopTest, AnOutageIsWaitedOut) {
  steps.attempts = {Held{"a"}, kGone, Held{"a"}, Granted{}};
  steps.waits = {true, Error{Errc::lost, "the session has ended"}};
  EXPECT_TRUE(run());
  EXPECT_EQ(steps.asked,
            "attempt wait attempt recover:gone attempt wait "
            "recover:the session has ended attempt ");
}

TEST_F(AcquireLoopTest, ARefusalEndsIt) {
  steps.attempts = {Held{"a"}, Error{Errc::conflict, "another mode"}};
  const auto lease = run();
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().code, Errc::conflict);
  EXPECT_EQ(steps.asked, "attempt wait attempt leave ");
}

}  // namespace
}  // namespace dlock
