// A lease that one process has let go and another picks up, on a majority of several servers.
#include <gtest/gtest.h>

#include <regex>

#include "redlock_fixture.hpp"

namespace dlock::test {
namespace {

class RedlockResume : public RedlockTest {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server is not installed";
    start(3);
  }
  static constexpr Mask kAll = 0b111;
  static std::vector<Request> of_each_mode() {
    return {unkept(request("job")), unkept(shared("job")), unkept(slots("job", 2))};
  }
  /// Acquires it and lets it go, with the connections, as a process that exits.
  static std::string let_go(std::unique_ptr<Backend> backend, const Request& wanted) {
    const auto lease = hold(*backend, wanted);
    return lease ? lease->owner_id() : "";
  }
  std::string let_go(const Request& wanted) const { return let_go(client(), wanted); }
  /// Renews it, and lets it go at once.
  Result<void> renew_once(const std::string& id) const {
    const auto lease = pick_up(*client(), id);
    return lease ? renew(*lease) : Error{Errc::invalid, "not picked up"};
  }
  Mask having_the_lock() const { return having(lock_of("job"), kAll); }
  /// The same list, in another order.
  std::unique_ptr<Backend> from_the_end() const {
    return connect("127.0.0.1:" + std::to_string(servers[2].port()) +
                   ",127.0.0.1:" + std::to_string(servers[0].port()) +
                   ",127.0.0.1:" + std::to_string(servers[1].port()));
  }
  std::string record(unsigned node, const Request& wanted) const {
    const std::string name = names("job").owner;
    return wanted.mode == Mode::exclusive ? servers[node].command("GET", name)
                                          : servers[node].command("HGET", name, wanted.owner.id);
  }
  /// What the servers have agreed on, as their records have it: the same on each.
  bool is_agreed_on(std::optional<std::uint64_t> fence, const Request& wanted) const {
    for (const unsigned node : members(kAll)) {
      const std::string text = record(node, wanted);
      if (text.find("\"fence\":" + std::to_string(fence.value_or(0)) + '}') == std::string::npos) {
        std::cerr << node << ": " << text << '\n';
        return false;
      }
    }
    return true;
  }
};

TEST_F(RedlockResume, EachServerHasWhatNobodyKeepsWhenItIsGranted) {
  int quick = 0;
  for (int i = 0; i < 20; ++i) {
    for (const Request& wanted : of_each_mode()) {
      auto backend = client();
      auto lease = hold(*backend, wanted);
      ASSERT_TRUE(lease);
      const auto fence = lease->fence();
      const bool is_of_first_round = lease->owner_id().ends_with(":1");
      lease.reset();
      backend.reset();
      EXPECT_EQ(having_the_lock(), kAll);
      // Else the first server was slow, and a second one was asked: that has its own number, which
      // can be larger, and then it does not write the one that the majority has.
      if (is_of_first_round) {
        EXPECT_TRUE(is_agreed_on(fence, wanted));
        ++quick;
      }
      flush(kAll);
    }
  }
  EXPECT_GT(quick, 0);
}

TEST_F(RedlockResume, TokenAndNumberStayTheSameInWhateverOrderTheServersAreListed) {
  auto last = client();
  for (const Request& wanted : of_each_mode()) {
    SCOPED_TRACE(mode_name(wanted.mode));
    auto first = hold(*last, wanted);
    ASSERT_TRUE(first && first->fence());
    for (const bool straight : {true, false, true}) {
      auto backend = straight ? client() : from_the_end();
      auto lease = pick_up(*backend, wanted.owner.id);
      ASSERT_TRUE(lease);
      EXPECT_EQ(lease->fence(), first->fence());
      EXPECT_EQ(lease->slot(), first->slot());
      const auto renewed = renew(*lease);
      ASSERT_TRUE(renewed) << renewed.error().message;
      lease.reset();
      backend.reset();
      EXPECT_TRUE(is_agreed_on(first->fence(), wanted));
      const LockInfo lock = inspect(*last, "job");
      ASSERT_EQ(lock.holders.size(), 1u);
      EXPECT_EQ(lock.holders[0].fence, first->fence());
      EXPECT_EQ(lock.holders[0].slot, first->slot());
      EXPECT_EQ(lock.nodes_agreeing, 3u);
    }
    const auto lease = pick_up(*from_the_end(), wanted.owner.id);
    EXPECT_TRUE(lease && release(*lease));
    const auto next = hold(*last, rival_of(wanted));
    ASSERT_TRUE(next);
    EXPECT_GT(next->fence(), first->fence());
    EXPECT_TRUE(release(*next));
  }
}

// --- one server is down

TEST_F(RedlockResume, OneThatWasDownAtTheGrantIsGivenItByARenewal) {
  for (const Request& wanted : of_each_mode()) {
    SCOPED_TRACE(mode_name(wanted.mode));
    strike(0b010, Death::killed);
    const std::string id = let_go(wanted);
    heal(0b010, Death::killed);
    EXPECT_EQ(having_the_lock(), 0b101U);
    const auto renewed = renew_once(id);
    EXPECT_TRUE(renewed) << renewed.error().message;
    EXPECT_EQ(having_the_lock(), kAll);
    const auto lease = pick_up(*client(), id);
    ASSERT_TRUE(lease);
    EXPECT_TRUE(is_agreed_on(lease->fence(), wanted));
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(only_counters_are_left(kAll));
  }
}

TEST_F(RedlockResume, OneMayBeDownWhenItIsRenewedOrReleased) {
  for (const Death death : {Death::killed, Death::stopped}) {
    for (const Request& wanted : of_each_mode()) {
      SCOPED_TRACE(mode_name(wanted.mode));
      if (death == Death::stopped && wanted.mode == Mode::shared) continue;  // it takes 3 s
      const std::string id = let_go(wanted);
      strike(0b100, death);
      auto backend = client();
      auto lease = pick_up(*backend, id);
      ASSERT_TRUE(lease);
      auto renewed = renew_soon(*lease);
      EXPECT_TRUE(renewed) << renewed.error().message;
      lease = pick_up(*backend, id);
      ASSERT_TRUE(lease);
      const auto released = release(*lease);
      EXPECT_TRUE(released) << released.error().message;
      EXPECT_TRUE(is_free_for(*backend, rival_of(wanted)));
      heal(0b100, death);
      // What was stopped for longer than the client had patience with it has not heard of the
      // release: there the lock ends with its ttl.
      EXPECT_TRUE(only_counters_are_left(death == Death::stopped ? 0b011 : kAll));
      flush(kAll);
    }
  }
}

TEST_F(RedlockResume, OneThatHasForgottenIsGivenItByARenewal) {
  for (const Request& wanted : of_each_mode()) {
    SCOPED_TRACE(mode_name(wanted.mode));
    const std::string id = let_go(wanted);
    for (const unsigned node : members(kAll)) {
      flush(1U << node);
      const auto renewed = renew_once(id);
      EXPECT_TRUE(renewed) << renewed.error().message;
      EXPECT_EQ(having_the_lock(), kAll);
    }
    EXPECT_FALSE(try_once(*client(), request("job")));
    const auto lease = pick_up(*client(), id);
    ASSERT_TRUE(lease);
    EXPECT_TRUE(is_agreed_on(lease->fence(), wanted));
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(only_counters_are_left(kAll));
  }
}

TEST_F(RedlockResume, WhereTheMajorityHasForgottenItIsLost) {
  const std::string id = let_go(unkept(request("job")));
  auto backend = client();
  const auto one = pick_up(*backend, id);
  const auto two = pick_up(*backend, id);
  ASSERT_TRUE(one && two);
  flush(0b011);
  EXPECT_EQ(code_of(renew(*one)), Errc::lost);
  EXPECT_EQ(code_of(release(*two)), Errc::lost);
  EXPECT_TRUE(is_held_by(0, "job", kAll));
}

// --- what is not certain

// The acquirer has gone, and what it has asked of a server comes there when the lock was given
// back.
TEST_F(RedlockResume, AVoteThatComesAfterTheReleaseIsNotGiven) {
  put_proxies();
  EXPECT_TRUE(
      release(*hold(*through_proxies(), request("teach"))));  // by EVALSHA only, from then on
  for (const Request& wanted : of_each_mode()) {
    SCOPED_TRACE(mode_name(wanted.mode));
    auto acquirer = through_proxies();
    let_finish(*acquirer);
    proxies[1].delay_requests(Millis{2'000});
    const std::string id = let_go(std::move(acquirer), wanted);
    proxies[1].pass();
    EXPECT_EQ(having_the_lock(), 0b101U);
    auto backend = through_proxies();
    const auto lease = pick_up(*backend, id);
    EXPECT_TRUE(lease && release(*lease));
    const Deadline until = in(3'000);
    while (Clock::now() < until) {
      ASSERT_EQ(having_the_lock(), 0U);
      util::wait_readable(-1, in(20));
    }
  }
}

// One has it, one does not, and one is silent.
TEST_F(RedlockResume, OfAMinorityItIsNotKnownWhetherItIsHeld) {
  const std::string id = let_go(unkept(request("job")));
  flush(0b010);
  strike(0b100, Death::stopped);
  auto backend = client();
  const auto one = pick_up(*backend, id);
  const auto two = pick_up(*backend, id);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(code_of(renew(*one)), Errc::unreachable);
  EXPECT_EQ(code_of(release(*two)), Errc::unreachable);
  heal(0b100, Death::stopped);
  EXPECT_TRUE(only_counters_are_left(kAll));
}

// The only server that has it and answers was not told the token.
TEST_F(RedlockResume, ATokenThatIsNotKnownIsNotForgottenByARenewal) {
  const Request wanted = unkept(request("job"));
  const std::string id = let_go(wanted);
  const std::string text = record(0, wanted);
  servers[0].command("SET", names("job").owner,
                     std::regex_replace(text, std::regex(",\"fence\":[0-9]+}$"), "}"), "PX",
                     "60000");
  flush(0b010);
  strike(0b100, Death::stopped);
  auto backend = client();
  const auto blind = pick_up(*backend, id);
  ASSERT_TRUE(blind);
  EXPECT_FALSE(blind->fence());
  heal(0b100, Death::stopped);
  EXPECT_EQ(code_of(renew(*blind)), Errc::unreachable);
  const auto lease = pick_up(*client(), id);
  ASSERT_TRUE(lease && lease->fence());
  EXPECT_TRUE(renew_soon(*lease));
  EXPECT_TRUE(is_agreed_on(lease->fence(), wanted));
  EXPECT_TRUE(release(*lease));
}

// Its majority is one of these servers: fewer or more of them prove nothing.
TEST_F(RedlockResume, ByAnotherListOfServersItIsRefused) {
  start(kServers);
  const auto list_of = [&](unsigned count) {
    std::string out;
    for (unsigned node = 0; node < count; ++node) {
      out += (out.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(servers[node].port());
    }
    return connect(out);
  };
  const std::string id = let_go(list_of(3), unkept(request("job")));
  EXPECT_EQ(code_of(resume(*list_of(5), id)), Errc::invalid);
  EXPECT_EQ(code_of(resume(*list_of(1), id)), Errc::invalid);
  EXPECT_EQ(code_of(resume(*connect_redis(servers[0].port()), id)), Errc::invalid);
  const auto lease = pick_up(*list_of(3), id);
  EXPECT_TRUE(lease && release(*lease));
}

TEST_F(RedlockResume, WhatIsNotOursIsRefused) {
  put_foreign(kAll);
  EXPECT_EQ(code_of(resume(*client(), "somebody else")), Errc::invalid);
}

TEST_F(RedlockResume, ServersOutOfMemoryKeepAndFreeIt) {
  const std::string id = let_go(unkept(request("job")));
  for (const unsigned node : members(kAll)) {
    servers[node].command("CONFIG", "SET", "maxmemory", "1");
  }
  const auto renewed = renew_once(id);
  EXPECT_TRUE(renewed) << renewed.error().message;
  const auto lease = pick_up(*client(), id);
  ASSERT_TRUE(lease);
  EXPECT_TRUE(release(*lease));
  EXPECT_EQ(having_the_lock(), 0U);
}

}  // namespace
}  // namespace dlock::test
