// Answers that are lost or late, and attempts that fail: what they leave behind.
#include <gtest/gtest.h>

#include "redlock_fixture.hpp"

namespace dlock::test {
namespace {

class RedlockFaults : public RedlockTest {
 protected:
  void SetUp() override {
    RedlockTest::SetUp();
    if (IsSkipped()) return;
    teach_scripts();
    put_proxies();
  }
  void lose_replies_to(const redis::Script& script, Mask mask) {
    for (const unsigned node : members(mask)) {
      proxies[node].lose_reply_to(std::string(script.sha1));
    }
  }
  long lost_replies() {
    long sum = 0;
    for (Proxy& proxy : proxies) sum += proxy.lost_replies();
    return sum;
  }
  void hold_replies(Mask mask) {
    for (const unsigned node : members(mask)) proxies[node].hold();
  }
  void pass_all() {
    for (Proxy& proxy : proxies) proxy.pass();
  }
  /// It keeps `other` out, can be renewed, and leaves nothing behind.
  void expect_to_work(Lease& lease, Backend& other) const {
    EXPECT_EQ(code_of(try_once(other, request("job"))), Errc::busy);
    EXPECT_TRUE(renew_soon(lease));
    EXPECT_TRUE(release(lease));
    EXPECT_TRUE(is_held_by(0, "job"));
  }
  /// Connected, and known to be prompt.
  std::unique_ptr<Backend> ready_client() const {
    auto out = through_proxies();
    let_finish(*out);
    return out;
  }
};

constexpr Millis kTtl{4'000};
Request short_request(const std::string& key = "job") {
  return request(key, Mode::exclusive, 1, kTtl);
}

// --- an attempt that fails

TEST_F(RedlockFaults, AnAttemptThatFailsLeavesNothingOnTheOthers) {
  auto a = ready_client();
  for (const Mask taken : {0b00111U, 0b11100U, 0b10101U, 0b11011U}) {
    SCOPED_TRACE(in_words(taken));
    put_foreign(taken);
    for (const Request& wanted : {request("job"), shared("job"), slots("job", 1)}) {
      EXPECT_EQ(code_of(try_once(*a, wanted)), Errc::busy);
      EXPECT_EQ(having(lock_of("job")), taken);
      EXPECT_EQ(having(names("job").owner), 0U);
    }
    flush(kEach);
  }
}

TEST_F(RedlockFaults, AnAttemptOfANewClientThatFailsLeavesNothingOnTheOthers) {
  const Mask taken = 0b00111;
  put_foreign(taken);
  for (int i = 0; i < 30; ++i) {
    auto a = through_proxies();
    EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
    let_finish(*a);
    ASSERT_EQ(having(lock_of("job")), taken) << i;
  }
}

TEST_F(RedlockFaults, AnAttemptThatFailsIsUndoneWhereItsAnswerIsLate) {
  const Mask taken = 0b01101;
  const Mask late = kEach & ~taken;
  for (const bool requests : {false, true}) {
    for (const bool client_ends : {false, true}) {
      SCOPED_TRACE(std::string(requests ? "requests" : "replies") + " are late" +
                   (client_ends ? ", the client ends" : ""));
      put_foreign(taken);
      auto a = ready_client();
      for (const unsigned node : members(late)) {
        if (requests) {
          proxies[node].delay_requests(Millis{400});
        } else {
          proxies[node].delay_replies(Millis{400});
        }
      }
      EXPECT_LT(time_of([&] { EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy); }),
                here(Millis{2'500}));
      if (client_ends) a.reset();
      let_finish(*through_proxies());  // behind all that was asked there
      EXPECT_TRUE(eventually(
          [&] { return having(lock_of("job")) == taken && having(names("job").owner) == 0; }));
      pass_all();
      flush(kEach);
    }
  }
}

// Who is let in late must not ask for what was given up meanwhile.
TEST_F(RedlockFaults, AnAttemptThatFailsIsNotMadeLaterWhereItTakesLongToGetIn) {
  for (const RedisServer& server : servers) server.command("CONFIG", "SET", "requirepass", "pw");
  const auto say = [&](unsigned node, const std::vector<std::string>& words) {
    RawClient raw(servers[node]);
    raw.send("AUTH pw");
    raw.read_until("+OK\r\n");
    std::string line;
    for (const std::string& word : words) line += word + ' ';
    raw.send(line);
    return raw.read_until("\r\n");
  };
  const Mask taken = 0b01101;
  const Mask late = kEach & ~taken;
  for (const unsigned node : members(taken)) say(node, {"SET", lock_of("job"), "x", "PX", "60000"});
  for (const unsigned node : members(late)) proxies[node].delay_replies(Millis{400});
  auto a = connect(":pw@" + addresses_of(proxies));
  EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
  let_finish(*a);
  for (const unsigned node : members(late)) {
    EXPECT_EQ(say(node, {"EXISTS", lock_of("job")}), ":0\r\n") << node;
  }
}

// --- answers that are lost

TEST_F(RedlockFaults, AnswersOfAMinorityThatAreLostAreMissedByNobody) {
  auto b = client();
  for (const redis::Script* script :
       {&redis::kAsk, &redis::kVote, &redis::kRenew, &redis::kLeave}) {
    for (const Mask mask : {0b00001U, 0b00110U, 0b11000U}) {
      auto a = ready_client();
      const long lost_before = lost_replies();
      lose_replies_to(*script, mask);
      const Request wanted = short_request();
      std::unique_ptr<Lease> lease;
      EXPECT_LT(time_of([&] { lease = hold(*a, wanted); }), here(Millis{2'000}));
      ASSERT_TRUE(lease);
      EXPECT_EQ(code_of(try_once(*b, short_request())), Errc::busy);
      EXPECT_EQ(inspect(*b, "job").holders.size(), 1u);
      // On a busy machine a majority may have it before the others are asked: then it has no
      // minority to lose.
      const bool by_all = having(lock_of("job"), kEach) == kEach;
      const auto renewed = renew(*lease);
      EXPECT_TRUE(renewed || !by_all) << renewed.error().message;
      EXPECT_EQ(code_of(try_once(*b, short_request())), Errc::busy);
      const auto released = release(*lease);
      EXPECT_TRUE(released || !by_all) << released.error().message;
      EXPECT_LT(time_of([&] { EXPECT_TRUE(is_held_by(0, "job")); }), kTtl);
      // Questions and votes go to some of them only.
      if (script == &redis::kRenew || script == &redis::kLeave) {
        let_finish(*a);
        EXPECT_EQ(lost_replies() - lost_before, std::popcount(mask));
      }
      pass_all();
    }
  }
}

TEST_F(RedlockFaults, AnAcquireWhoseAnswersAreLostByTheMajorityIsGrantedOrUndone) {
  auto b = client();
  for (const redis::Script* script : {&redis::kAsk, &redis::kVote}) {
    for (const Mask mask : {0b00111U, 0b11101U, kEach}) {
      SCOPED_TRACE(in_words(mask));
      auto a = ready_client();
      lose_replies_to(*script, mask);
      LeaseResult lease = Error{Errc::invalid, ""};
      EXPECT_LT(time_of([&] { lease = try_once(*a, short_request()); }), here(Millis{2'500}));
      if (lease) {
        EXPECT_EQ(code_of(try_once(*b, short_request())), Errc::busy);
        EXPECT_TRUE(renew_soon(**lease));
        EXPECT_TRUE(release(**lease));
      } else {
        EXPECT_EQ(lease.error().code, Errc::unreachable) << lease.error().message;
      }
      EXPECT_LT(time_of([&] { EXPECT_TRUE(is_held_by(0, "job")); }), here(Millis{1'000}));
      pass_all();
    }
  }
}

TEST_F(RedlockFaults, AWaiterWhoseAnswersAreLostGetsTheLockAndDoesNotWaitForItself) {
  auto b = client();
  for (const redis::Script* script : {&redis::kAsk, &redis::kVote}) {
    SCOPED_TRACE(script->name);
    auto held = hold(*b, request("job"));
    Waiting waiting(ready_client(), request("job"));
    ASSERT_TRUE(waiting.blocked());
    ASSERT_TRUE(eventually([&] { return having(names("job").queue) != 0; }));
    lose_replies_to(*script, kEach);
    EXPECT_TRUE(release(*held));
    std::unique_ptr<Lease> lease;
    EXPECT_LT(time_of([&] { lease = waiting.lease(); }), here(Millis{3'000}));
    ASSERT_TRUE(lease);
    EXPECT_GT(lease->fence(), held->fence());
    expect_to_work(*lease, *b);
    pass_all();
  }
}

// Whoever waits may have to wait for a network that hangs for a moment, too.
TEST_F(RedlockFaults, AWaiterSurvivesThatTheMajorityIsSilentForAMoment) {
  auto b = client();
  for (const Mask mask : {0b00111U, 0b11100U}) {
    SCOPED_TRACE(in_words(mask));
    auto held = hold(*b, request("job"));
    ASSERT_TRUE(is_held_by(kEach, "job"));
    let_finish(*b);
    Waiting waiting(ready_client(), request("job"));
    ASSERT_TRUE(waiting.blocked());
    ASSERT_TRUE(eventually([&] { return having(names("job").queue) != 0; }));
    const Mask head = having(names("job").queue);
    hold_replies(mask);
    // Where it is called last: these two have other names for the servers, so none of them may have
    // the old lock by then.
    for (const unsigned node : members(kEach & ~head)) {
      servers[node].command("DEL", lock_of("job"), names("job").owner);
    }
    const auto released = release(*held);
    ASSERT_FALSE(released);
    EXPECT_EQ(released.error().code, Errc::lost) << released.error().message;
    // It asks, hears nothing, and undoes what may have been granted, of which it hears nothing.
    util::wait_readable(-1, in(700));
    pass_all();
    auto lease = waiting.result();
    ASSERT_TRUE(lease) << lease.error().message;
    expect_to_work(**lease, *b);
  }
}

// On a machine that is busy enough all servers are too slow for the short time they have.
TEST_F(RedlockFaults, WhoeverWaitsAsksAgainAlsoIfTheFirstAnswersAreLate) {
  auto b = client();
  auto a = ready_client();
  hold_replies(0b11100);
  Waiting waiting(std::move(a), request("job"));
  ASSERT_TRUE(eventually([&] { return having(lock_of("job")) == kEach; }));
  ASSERT_TRUE(eventually([&] { return having(lock_of("job")) == 0; })) << "not undone";
  ASSERT_TRUE(eventually([&] { return having(lock_of("job")) == kEach; })) << "not asked again";
  pass_all();
  auto lease = waiting.result();
  ASSERT_TRUE(lease) << lease.error().message;
  expect_to_work(**lease, *b);
}

TEST_F(RedlockFaults, AReleaseWaitsForAMajorityThatIsSlow) {
  auto a = ready_client();
  auto lease = hold(*a, request("job"));
  ASSERT_TRUE(is_held_by(kEach, "job"));
  for (const unsigned node : members(0b11100)) proxies[node].delay_replies(Millis{400});
  const auto released = release(*lease);
  EXPECT_TRUE(released) << released.error().message;
  EXPECT_TRUE(is_held_by(0, "job"));
}

TEST_F(RedlockFaults, ARenewalWhoseAnswersAreLostByTheMajorityFailsAndKeepsTheLock) {
  auto b = client();
  auto a = ready_client();
  auto lease = hold(*a, request("job"));
  ASSERT_TRUE(is_held_by(kEach, "job"));
  let_finish(*a);
  for (const Mask mask : {0b00111U, kEach}) {
    const Deadline before = lease->valid_until();
    lose_replies_to(redis::kRenew, mask);
    const auto renewed = renew(*lease);
    ASSERT_FALSE(renewed);
    EXPECT_EQ(renewed.error().code, Errc::unreachable) << renewed.error().message;
    EXPECT_EQ(lease->valid_until(), before);
    EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
    EXPECT_TRUE(renew_soon(*lease));
    EXPECT_GT(lease->valid_until(), before);
  }
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(only_counters_are_left());
}

// The waiters are in the queue of one server: they would sleep there for the whole ttl.
TEST_F(RedlockFaults, AShortenedLeaseThatOneServerHasNotHeardOfIsToldAndCanBeRenewed) {
  auto a = ready_client();
  auto lease = hold(*a, request("job", Mode::exclusive, 1, Millis{60'000}));
  proxies[2].blackhole();
  const Deadline until = in(20'000);
  // A busy machine may be slower than one server is waited for.
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(code_of(lease->end_command(until, soon(), Cancel())), Errc::unreachable);
    return lease->valid_until() <= until;
  })) << "most of them have heard of it";
  EXPECT_TRUE(eventually([&] { return renew(*lease).has_value(); }));
  EXPECT_GT(lease->valid_until(), until);
  proxies[2].cut();
  proxies[2].pass();
  EXPECT_TRUE(eventually([&] { return lease->end_command(until, soon(), Cancel()).has_value(); }));
  EXPECT_LE(lease->valid_until(), until);
}

// It keeps no waiter asleep, and a slow grant may never have reached it.
TEST_F(RedlockFaults, AServerThatLacksTheLockIsNotMissedWhenTheLeaseIsShortened) {
  auto a = client();
  auto lease = hold(*a, request("job", Mode::exclusive, 1, Millis{60'000}));
  ASSERT_TRUE(is_held_by(kEach, "job"));
  servers[1].command("DEL", names("job").lock);
  const Deadline until = in(20'000);
  const auto told = lease->end_command(until, soon(), Cancel());
  EXPECT_TRUE(told) << told.error().message;
  EXPECT_LE(lease->valid_until(), until);
}

TEST_F(RedlockFaults, AReleaseWhoseAnswersAreLostByTheMajorityFreesTheLockAllTheSame) {
  auto a = ready_client();
  auto lease = hold(*a, request("job"));
  ASSERT_TRUE(is_held_by(kEach, "job"));
  let_finish(*a);
  Waiting waiting(ready_client(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  ASSERT_TRUE(eventually([&] { return having(names("job").queue) != 0; }));
  lose_replies_to(redis::kLeave, 0b11110);
  const auto released = release(*lease);
  ASSERT_FALSE(released);
  EXPECT_EQ(released.error().code, Errc::unreachable) << released.error().message;
  auto next = waiting.lease();
  ASSERT_TRUE(next);
  const auto again = release(*lease);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::lost) << again.error().message;
  EXPECT_TRUE(renew_soon(*next));
  EXPECT_TRUE(release(*next));
  EXPECT_TRUE(only_counters_are_left());
}

// --- answers that are late

TEST_F(RedlockFaults, AnswersOfAMinorityThatAreLateAreMissedByNobody) {
  auto b = client();
  for (const Mask mask : {0b00011U, 0b10100U}) {
    for (int step = 0; step < 3; ++step) {  // from acquire, renew, release on
      SCOPED_TRACE(in_words(mask) + " from step " + std::to_string(step));
      auto a = ready_client();
      if (step == 0) hold_replies(mask);
      std::unique_ptr<Lease> lease;
      EXPECT_LT(time_of([&] { lease = hold(*a, short_request()); }), here(Millis{1'000}));
      ASSERT_TRUE(lease);
      if (step == 1) hold_replies(mask);
      Result<void> renewed;
      EXPECT_LT(time_of([&] { renewed = renew(*lease); }), here(Millis{1'000}));
      EXPECT_TRUE(renewed) << renewed.error().message;
      EXPECT_EQ(code_of(try_once(*b, short_request())), Errc::busy);
      if (step == 2) hold_replies(mask);
      Result<void> released;
      EXPECT_LT(time_of([&] { released = release(*lease); }), here(Millis{1'000}));
      EXPECT_TRUE(released) << released.error().message;
      pass_all();
      EXPECT_LT(time_of([&] { EXPECT_TRUE(is_held_by(0, "job")); }), kTtl);
      let_finish(*a);
      EXPECT_TRUE(is_held_by(0, "job"));
    }
  }
}

TEST_F(RedlockFaults, AnAcquireWhoseAnswersAreLateIsUndoneAndNoLateOneIsTakenForAnother) {
  auto b = client();
  auto a = ready_client();
  auto blocker = hold(*b, request("other"));
  ASSERT_TRUE(is_held_by(kEach, "other"));
  hold_replies(0b11100);
  LeaseResult lease = Error{Errc::invalid, ""};
  EXPECT_LT(time_of([&] { lease = try_once(*a, request("job")); }), here(Millis{2'500}));
  ASSERT_EQ(code_of(lease), Errc::unreachable) << lease.error().message;
  expect_names(lease.error(), 0b11100, proxies);
  pass_all();
  EXPECT_EQ(code_of(try_once(*a, request("other"))), Errc::busy);
  EXPECT_TRUE(is_held_by(0, "job"));
  EXPECT_TRUE(is_free_for(*b, request("job")));
}

TEST_F(RedlockFaults, ALateRenewalIsNotCreditedToTheNext) {
  auto a = ready_client();
  auto lease = hold(*a, request("job"));
  ASSERT_TRUE(is_held_by(kEach, "job"));
  let_finish(*a);
  hold_replies(0b01110);
  const Deadline before = lease->valid_until();
  const auto renewed = renew(*lease);
  ASSERT_FALSE(renewed);
  expect_names(renewed.error(), 0b01110, proxies);
  EXPECT_EQ(lease->valid_until(), before);
  flush(0b00111);
  pass_all();
  EXPECT_EQ(renew(*lease).error().code, Errc::lost);
}

// A majority that answers too late for this ttl is none.
TEST_F(RedlockFaults, WhatIsGrantedWhenTheTtlIsAlmostOverIsNotHeld) {
  auto a = ready_client();
  for (Proxy& proxy : proxies) proxy.delay_replies(Millis{150});
  // 30 ms for each server, 600 in all.
  const auto lease = try_once(*a, request("job", Mode::exclusive, 1, Millis{600}));
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().code, Errc::unreachable) << lease.error().message;
  pass_all();
  EXPECT_TRUE(is_held_by(0, "job"));
}

// --- cut off one by one, and healed in another order

TEST_F(RedlockFaults, ServersThatAreCutOffByTurnsNeverLetTwoIn) {
  auto b = client();
  auto a = ready_client();
  for (int turn = 0; turn < 20; ++turn) {
    const unsigned one = turn % kServers;
    const unsigned two = (turn * 3 + 1) % kServers;
    const Mask cut = 1U << one | 1U << two;
    strike(cut, turn % 2 == 0 ? Death::cut : Death::silent);
    auto lease = hold(*a, request("job" + std::to_string(turn)));
    ASSERT_TRUE(lease) << turn;
    EXPECT_EQ(code_of(try_once(*b, request("job" + std::to_string(turn)))), Errc::busy);
    EXPECT_TRUE(renew_soon(*lease)) << turn;
    const Mask healed = 1U << (turn % 3 == 0 ? one : two);
    heal(healed, Death::cut);
    EXPECT_TRUE(renew_soon(*lease)) << turn;
    EXPECT_EQ(code_of(try_once(*b, request("job" + std::to_string(turn)))), Errc::busy);
    const auto released = release(*lease);
    EXPECT_TRUE(released) << turn << released.error().message;
    heal(cut & ~healed, Death::cut);
  }
}

}  // namespace
}  // namespace dlock::test
