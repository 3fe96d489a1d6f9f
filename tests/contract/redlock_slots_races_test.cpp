// Several that want numbers of slots at the same time.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <latch>
#include <mutex>
#include <thread>

#include "redlock_slots_fixture.hpp"

namespace dlock::test {
namespace {

class RedlockSlotsRaces : public RedlockSlots {
 protected:
  void contend(unsigned slots, unsigned contenders, int times);
};

// Who started together, and failed at first, has nothing left of that.
TEST_F(RedlockSlotsRaces, EachHasItsNumberAndNoOther) {
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
      EXPECT_TRUE(renew_soon(*leases[i]));
      let_finish(*clients[i]);
    }
    for (const auto& lease : leases) {
      for (unsigned number = 1; number <= kSlots; ++number) {
        if (number == lease->slot()) continue;
        for (unsigned node = 0; node < servers.size(); ++node) {
          EXPECT_NE(holder_of(node, number), waiter_of(*lease)) << number << " at " << node;
        }
      }
    }
    for (const auto& lease : leases) EXPECT_TRUE(release(*lease));
  }
}

// One server is full of what is left from holders that have gone.
TEST_F(RedlockSlotsRaces, WhoLosesARaceForANumberGetsAnother) {
  start(3);
  auto a = client();
  auto b = client();
  const std::array both{a.get(), b.get()};
  for (unsigned round = 0; round < 21; ++round) {
    // The server that both ask first is believed for as long as a waiter sleeps.
    const bool is_first = round % 3 == first_asked();
    if (is_first && round > 2) continue;
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
      EXPECT_LT(waits[i], is_first ? here(Millis{8'000}) : Millis{2'000}) << round;
    }
    EXPECT_NE(leases[0]->slot(), leases[1]->slot());
    for (const auto& lease : leases) EXPECT_TRUE(release(*lease));
    for (const RedisServer& server : servers) server.command("FLUSHALL");
  }
}

void RedlockSlotsRaces::contend(unsigned slots, unsigned contenders, int times) {
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

TEST_F(RedlockSlotsRaces, SixContendersForThreeOfThreeServers) {
  start(3);
  contend(3, 6, 20);
}
TEST_F(RedlockSlotsRaces, SixContendersForThreeOfFiveServers) { contend(3, 6, 20); }
TEST_F(RedlockSlotsRaces, SixContendersWhileTheFirstServersAreDown) {
  strike(0b00011, Death::killed);
  contend(3, 6, 20);
}
TEST_F(RedlockSlotsRaces, ThirtyContendersForTwentySlots) {
  start(3);
  contend(20, 30, 5);
}

}  // namespace
}  // namespace dlock::test
