// The numbers of slots: each is held on a majority of the servers.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "redlock_fixture.hpp"

namespace dlock::test {
namespace {

class RedlockSlots : public RedlockTest {
 protected:
  /// A slots holder on some of the servers, of "job", for a minute; without a number it is one of
  /// an earlier dlock.
  void put_holder(Mask mask, const std::string& id, std::optional<unsigned> number,
                  unsigned slots = 3) {
    const std::string until = std::to_string(
        std::chrono::floor<Millis>(std::chrono::system_clock::now().time_since_epoch()).count() +
        60'000);
    const std::string record = R"({"id":")" + id + R"(","mode":"slots","slots":)" +
                               std::to_string(slots) + R"(,"ttl_ms":60000,"fence":7})";
    const redis::Names its = names("job");
    for (const unsigned node : members(mask)) {
      const RedisServer& server = servers[node];
      server.command("ZADD", its.lock, until, id);
      server.command("PEXPIREAT", its.lock, until);
      server.command("HSET", its.owner, "@mode", "n" + std::to_string(slots), id, record);
      if (number) server.command("HSET", its.owner, field(*number), id);
      server.command("PEXPIREAT", its.owner, until);
    }
  }
  void remove_holder(const std::string& id) {
    for (const RedisServer& server : servers) server.command("ZREM", names("job").lock, id);
  }
  static std::string field(unsigned number) { return "#" + std::to_string(number); }
  std::string holder_of(unsigned node, unsigned number) const {
    return servers[node].command("HGET", names("job").owner, field(number));
  }
  /// The servers that have the number for this lease.
  Mask having_number(const Lease& lease, unsigned number) const {
    Mask out = 0;
    for (const unsigned node : members(kEach)) {
      if (holder_of(node, number) == lease.owner_id()) out |= 1U << node;
    }
    return out;
  }
  void contend(unsigned slots, unsigned contenders, int times);
};

TEST_F(RedlockSlots, NumbersAreGivenWhileAMinorityIsDown) {
  strike(0b10001, Death::killed);
  auto a = client();
  auto b = client();
  auto one = hold(*a, slots("job", 2));
  auto two = hold(*b, slots("job", 2));
  EXPECT_EQ(one->slot(), 1u);
  EXPECT_EQ(two->slot(), 2u);
  EXPECT_EQ(code_of(try_once(*b, slots("job", 2))), Errc::busy);
  heal(0b10001, Death::killed);
  EXPECT_EQ(code_of(try_once(*b, slots("job", 2))), Errc::busy);
  EXPECT_TRUE(release(*two));
  EXPECT_EQ(hold(*a, slots("job", 2))->slot(), 2u);
}

TEST_F(RedlockSlots, ANumberThatAMajorityHasForAnotherIsNotGiven) {
  put_holder(0b00111, "0f", 1);
  auto a = client();
  auto lease = hold(*a, slots("job", 3));
  EXPECT_EQ(lease->slot(), 2u);
  EXPECT_TRUE(eventually([&] { return having_number(*lease, 2) == kEach; }));
  // The server that was asked first may have given it another: that has gone back.
  for (const unsigned node : members(kEach)) {
    EXPECT_NE(holder_of(node, 1), lease->owner_id());
    EXPECT_NE(holder_of(node, 3), lease->owner_id());
  }
}

// Whichever server is the first, it does not know that number 1 is taken elsewhere.
TEST_F(RedlockSlots, ANumberThatTheFirstServerHasGivenInVainIsGivenBack) {
  auto a = client();
  for (const Mask other : {0b11100U, 0b00111U}) {
    SCOPED_TRACE(in_words(other));
    put_holder(other, "0f", 1);
    auto lease = hold(*a, slots("job", 3));
    EXPECT_EQ(lease->slot(), 2u);
    EXPECT_TRUE(eventually([&] { return having_number(*lease, 2) == kEach; }));
    EXPECT_EQ(having_number(*lease, 1), 0u);
    EXPECT_TRUE(release(*lease));
    flush(kEach);
  }
}

TEST_F(RedlockSlots, ANumberThatFewHaveForAnotherIsGiven) {
  put_holder(0b00011, "0f", 1);
  auto a = client();
  auto lease = hold(*a, slots("job", 3));
  const unsigned number = lease->slot().value_or(0);
  EXPECT_TRUE(is_majority(having_number(*lease, number)));
  // Where it was another's, a renewal takes it when that has gone.
  remove_holder("0f");
  EXPECT_TRUE(eventually([&] { return renew(*lease) && having_number(*lease, number) == kEach; }));
}

// Every server has room, and all three numbers are taken.
TEST_F(RedlockSlots, AWaiterGetsInWhereNoServerIsFull) {
  start(3);
  for (const std::string gone : {"0a", "0b", "0c"}) {
    SCOPED_TRACE(gone);
    put_holder(0b011, "0a", 1);
    put_holder(0b110, "0b", 2);
    put_holder(0b101, "0c", 3);
    auto a = client();
    EXPECT_EQ(code_of(try_once(*a, slots("job", 3))), Errc::busy);
    Waiting first(client(), slots("job", 3));
    Waiting second(client(), slots("job", 3));
    ASSERT_TRUE(first.blocked());
    ASSERT_TRUE(second.blocked());
    for (const RedisServer& server : servers) server.command("ZREM", names("job").lock, gone);
    std::unique_ptr<Lease> lease;
    ASSERT_TRUE(eventually([&] { return first.done(0) || second.done(0); }));
    Waiting& winner = first.done(0) ? first : second;
    lease = winner.lease();
    ASSERT_TRUE(lease);
    EXPECT_EQ(lease->slot(), gone == "0a" ? 1u : gone == "0b" ? 2u : 3u);
    EXPECT_TRUE(release(*lease));
    lease = (&winner == &first ? second : first).lease();
    ASSERT_TRUE(lease);
    EXPECT_TRUE(release(*lease));
    for (const RedisServer& server : servers) server.command("FLUSHALL");
  }
}

TEST_F(RedlockSlots, ARenewalCountsOnlyServersThatHaveTheNumberForUs) {
  auto a = client();
  auto lease = hold(*a, slots("job", 3));
  ASSERT_TRUE(eventually([&] { return having_number(*lease, 1) == kEach; }));
  put_holder(0b00011, "0f", 1);
  EXPECT_TRUE(renew(*lease));
  put_holder(0b00100, "0f", 1);
  EXPECT_EQ(code_of(renew(*lease)), Errc::lost);
}

TEST_F(RedlockSlots, AServerThatForgetsIsGivenTheNumberAgain) {
  auto a = client();
  auto one = hold(*a, slots("job", 3));
  auto two = hold(*a, slots("job", 3));
  ASSERT_TRUE(eventually([&] { return having_number(*two, 2) == kEach; }));
  let_finish(*a);
  flush(0b01001);
  EXPECT_TRUE(eventually([&] { return renew(*two) && having_number(*two, 2) == kEach; }));
  EXPECT_TRUE(eventually([&] { return static_cast<bool>(renew(*one)); }));
  EXPECT_EQ(two->slot(), 2u);
}

TEST_F(RedlockSlots, AHolderOfAnEarlierDlockCountsWithoutANumber) {
  put_holder(kEach, "0f", {}, 2);
  auto a = client();
  auto lease = hold(*a, slots("job", 2));
  EXPECT_EQ(lease->slot(), 1u);
  EXPECT_EQ(code_of(try_once(*a, slots("job", 2))), Errc::busy);
  const LockInfo info = inspect(*a, "job");
  ASSERT_EQ(info.holders.size(), 2u);
  for (const LockInfo::Holder& holder : info.holders) {
    EXPECT_EQ(holder.slot, holder.owner.id == "0f" ? std::nullopt : lease->slot());
  }
}

// Who started together, and failed at first, has nothing left of that.
TEST_F(RedlockSlots, EachHasItsNumberAndNoOther) {
  start(3);
  constexpr unsigned kSlots = 8;
  for (int round = 0; round < 10; ++round) {
    std::vector<std::unique_ptr<Backend>> clients(kSlots);
    std::vector<std::unique_ptr<Lease>> leases(kSlots);
    for (auto& each : clients) each = client();
    leases[0] = hold(*clients[0], slots("job", kSlots));
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < kSlots; ++i) {
      threads.emplace_back([&, i] { leases[i] = hold(*clients[i], slots("job", kSlots)); });
    }
    for (auto& thread : threads) thread.join();
    for (unsigned i = 0; i < kSlots; ++i) {
      ASSERT_TRUE(leases[i]);
      EXPECT_TRUE(renew(*leases[i]));
      let_finish(*clients[i]);
    }
    for (const auto& lease : leases) {
      for (unsigned number = 1; number <= kSlots; ++number) {
        if (number == lease->slot()) continue;
        for (unsigned node = 0; node < servers.size(); ++node) {
          EXPECT_NE(holder_of(node, number), lease->owner_id()) << number << " at " << node;
        }
      }
    }
    for (const auto& lease : leases) EXPECT_TRUE(release(*lease));
  }
}

// One server is full of what is left from holders that have gone.
TEST_F(RedlockSlots, WhoLosesARaceForANumberGetsAnother) {
  start(3);
  auto a = client();
  auto b = client();
  const std::array both{a.get(), b.get()};
  for (int round = 0; round < 30; ++round) {
    put_holder(1U << (round % 3), "0a", 1, 2);
    put_holder(1U << (round % 3), "0b", 2, 2);
    std::array<std::unique_ptr<Lease>, 2> leases;
    std::array<Millis, 2> waits{};
    std::latch start(2);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        waits[i] = time_of([&] { leases[i] = hold(*both[i], slots("job", 2)); });
      });
    }
    for (auto& thread : threads) thread.join();
    for (unsigned i = 0; i < 2; ++i) {
      ASSERT_TRUE(leases[i]) << round;
      EXPECT_LT(waits[i], Millis{2'000}) << round;
    }
    EXPECT_NE(leases[0]->slot(), leases[1]->slot());
    for (const auto& lease : leases) EXPECT_TRUE(release(*lease));
    for (const RedisServer& server : servers) server.command("FLUSHALL");
  }
}

// Each of the holders, whoever renews first.
TEST_F(RedlockSlots, ServersMayForgetOneAfterAnother) {
  start(3);
  auto a = client();
  std::array<std::unique_ptr<Lease>, 3> leases;
  for (auto& lease : leases) lease = hold(*a, slots("job", 3));
  const auto all_are_at = [&](unsigned node) {
    bool all = true;
    for (unsigned number = 1; number <= 3; ++number) {
      all = holder_of(node, number) == leases[number - 1]->owner_id() && all;
    }
    return all;
  };
  for (unsigned node = 0; node < 3; ++node) {
    EXPECT_TRUE(eventually([&] { return all_are_at(node); }));
  }
  for (const bool last_first : {true, false}) {
    for (unsigned node = 0; node < 3; ++node) {
      SCOPED_TRACE(node);
      let_finish(*a);
      flush(1U << node);
      EXPECT_TRUE(eventually([&] {
        for (unsigned i = 0; i < 3; ++i) {
          EXPECT_TRUE(renew(*leases[last_first ? 2 - i : i]));
          let_finish(*a);
        }
        return all_are_at(node) || HasFailure();
      }));
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST_F(RedlockSlots, AHolderThatComesToAnEmptyServerKeepsNobodyOut) {
  start(3);
  auto a = client();
  for (const bool shares : {false, true}) {
    const auto wanted = [&] { return shares ? shared("job") : slots("job", 4); };
    std::array<std::unique_ptr<Lease>, 4> leases;
    for (unsigned i = 0; i < 3; ++i) leases[i] = hold(*a, wanted());
    let_finish(*a);
    flush(0b00001);
    leases[3] = hold(*a, wanted());
    EXPECT_TRUE(eventually([&] {
      bool all = true;
      for (const auto& lease : leases) {
        all = renew(*lease) && all;
        const std::string its = servers[0].command("ZSCORE", names("job").lock, lease->owner_id());
        all = its != "(nil)" && its != "" && all;
      }
      return all;
    }));
    for (const auto& lease : leases) EXPECT_TRUE(release(*lease));
    for (const RedisServer& server : servers) server.command("FLUSHALL");
  }
}

// Of a server that was given them again, too: what an operator deletes does not come back.
TEST_F(RedlockSlots, WhatIsDeletedIsNotGivenAgain) {
  start(3);
  auto a = client();
  auto one = hold(*a, slots("job", 3));
  auto two = hold(*a, slots("job", 3));
  const redis::Names its = names("job");
  const auto has = [&](const Lease& lease) {
    return servers[0].command("ZSCORE", its.lock, lease.owner_id()) != "(nil)";
  };
  flush(0b00001);
  EXPECT_TRUE(eventually([&] { return renew(*two) && renew(*one) && has(*one) && has(*two); }));
  const auto renew_both = [&] {
    for (int times = 0; times < 3; ++times) {
      EXPECT_TRUE(renew(*one));
      EXPECT_TRUE(renew(*two));
      let_finish(*a);
    }
  };
  servers[0].command("ZREM", its.lock, one->owner_id());
  renew_both();
  EXPECT_FALSE(has(*one));
  EXPECT_TRUE(has(*two));
  servers[0].command("DEL", its.lock);
  auto b = client();
  auto three = hold(*b, slots("job", 3));
  EXPECT_TRUE(eventually([&] { return has(*three); }));
  renew_both();
  EXPECT_FALSE(has(*one));
  EXPECT_FALSE(has(*two));
}

void RedlockSlots::contend(unsigned slots, unsigned contenders, int times) {
  std::vector<std::atomic<int>> inside(slots + 1);
  std::mutex mutex;
  std::vector<Millis> waits;
  std::latch start(contenders);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < contenders; ++i) {
    threads.emplace_back([&] {
      auto one = client();
      start.arrive_and_wait();
      for (int round = 0; round < times; ++round) {
        std::unique_ptr<Lease> lease;
        const auto waited = time_of([&] { lease = hold(*one, dlock::test::slots("job", slots)); });
        if (!lease) return;
        const unsigned number = lease->slot().value_or(0);
        EXPECT_EQ(inside.at(number).fetch_add(1), 0) << number;
        std::this_thread::sleep_for(Millis{5});
        --inside.at(number);
        EXPECT_TRUE(release(*lease));
        const std::lock_guard lock(mutex);
        waits.push_back(waited);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(waits.size(), contenders * static_cast<unsigned>(times));
  EXPECT_EQ(inside.at(0), 0);
  std::sort(waits.begin(), waits.end());
  const std::string what = std::to_string(contenders) + " contenders for " + std::to_string(slots) +
                           " slots on " + std::to_string(servers.size()) + ": ";
  report(what + "median wait", waits[waits.size() / 2]);
  report(what + "worst wait", waits.back());
  EXPECT_LT(waits.back(), Millis{10'000});
}

TEST_F(RedlockSlots, SixContendersForThreeOfThreeServers) {
  start(3);
  contend(3, 6, 20);
}
TEST_F(RedlockSlots, SixContendersForThreeOfFiveServers) { contend(3, 6, 20); }
TEST_F(RedlockSlots, SixContendersWhileTheFirstServersAreDown) {
  strike(0b00011, Death::killed);
  contend(3, 6, 20);
}
TEST_F(RedlockSlots, ThirtyContendersForTwentySlots) {
  start(3);
  contend(20, 30, 5);
}

}  // namespace
}  // namespace dlock::test
