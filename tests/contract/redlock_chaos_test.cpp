// Everything at once: no two ever hold the lock, and the tokens are in order.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <random>
#include <thread>

#include "redlock_fixture.hpp"

namespace dlock::test {
namespace {

/// Who may believe that it holds the lock, and until when.
class Claims {
 public:
  void granted(int client, Deadline valid_until, std::uint64_t fence) {
    const std::lock_guard lock(mutex_);
    const Deadline now = Clock::now();
    ++grants_;
    if (now >= valid_until) return;  // it claims nothing any more
    if (client_ >= 0 && now < valid_until_) {
      violations_ += " client " + std::to_string(client) + " is granted what client " +
                     std::to_string(client_) + " holds;";
    }
    if (fence <= fence_) {
      violations_ += " token " + std::to_string(fence) + " after " + std::to_string(fence_) + ';';
    }
    fence_ = std::max(fence_, fence);
    client_ = client;
    valid_until_ = valid_until;
  }
  void renewed(int client, Deadline valid_until) {
    const std::lock_guard lock(mutex_);
    if (client_ == client) {
      valid_until_ = valid_until;
    } else if (Clock::now() < valid_until) {
      violations_ += " client " + std::to_string(client) + " renews what it has lost;";
    }
  }
  /// Before it is asked for.
  void releases(int client) {
    const std::lock_guard lock(mutex_);
    if (client_ == client) client_ = -1;
  }
  int grants() {
    const std::lock_guard lock(mutex_);
    return grants_;
  }
  std::string violations() {
    const std::lock_guard lock(mutex_);
    return violations_;
  }

 private:
  std::mutex mutex_;
  int client_ = -1;
  Deadline valid_until_{};
  std::uint64_t fence_ = 0;
  int grants_ = 0;
  std::string violations_;
};

class RedlockChaos : public RedlockTest {
 protected:
  static constexpr Millis kTtl{800};

  void contend(int number, std::atomic<bool>& stop) {
    std::minstd_rand random(static_cast<unsigned>(number) + 1);
    auto one = through_proxies();
    while (!stop) {
      auto result = one->acquire(request("job", Mode::exclusive, 1, kTtl), {.until = in(500)});
      if (!result) {
        EXPECT_TRUE(result.error().code == Errc::busy || result.error().code == Errc::unreachable)
            << result.error().message;
        continue;
      }
      auto lease = std::move(*result);
      claims.granted(number, lease->valid_until(), lease->fence().value_or(0));
      for (auto renewals = random() % 4; renewals > 0; --renewals) {
        // A renewal that comes too late is none (renewer.cpp).
        const Deadline before = lease->valid_until();
        if (lease->renew(before, Cancel()) && Clock::now() < before) {
          claims.renewed(number, lease->valid_until());
        }
      }
      if (random() % 16 == 0) continue;  // as if it died: the lock is left to its ttl
      claims.releases(number);
      (void)lease->release(in(300), Cancel());
    }
  }

  // One of the faults, on any servers.
  void make_trouble(std::minstd_rand& random) {
    // Most servers are spared: else hardly anything would be granted.
    const Mask mask = random() & random() & kEach;
    const auto kind = random() % 6;
    for (const unsigned node : members(mask)) {
      if (kind == 0) proxies[node].delay_replies(Millis{random() % 80});
      if (kind == 1) proxies[node].delay_requests(Millis{random() % 80});
      if (kind == 2) proxies[node].cut();
      if (kind == 3) proxies[node].blackhole();
      if (kind == 4) proxies[node].hold();
      if (kind == 5) proxies[node].lose_reply_to("dlock:job", 3);
    }
  }
  void make_peace() {
    for (Proxy& proxy : proxies) {
      proxy.cut();
      proxy.pass();
    }
  }

  Claims claims;
};

TEST_F(RedlockChaos, WhateverTheNetworkDoesNoTwoHoldTheLock) {
  put_proxies();
  const unsigned seed = std::random_device{}();
  std::minstd_rand random(seed);
  std::atomic<bool> stop = false;
  std::vector<std::thread> clients;
  for (int i = 0; i < 6; ++i) clients.emplace_back([&, i] { contend(i, stop); });
  for (int step = 0; step < 100; ++step) {
    const int before = claims.grants();
    const Deadline end = in(40);
    while (Clock::now() < end && claims.grants() < before + 5) util::wait_readable(-1, in(2));
    if (random() % 2 == 0) make_peace();
    make_trouble(random);
  }
  make_peace();
  // It comes to rest: what was left behind is over after a ttl.
  const int before = claims.grants();
  EXPECT_TRUE(eventually([&] { return claims.grants() > before + 10; }));
  stop = true;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(claims.violations(), "") << "seed " << seed;
  report("grants in spite of all", claims.grants(), "");
  EXPECT_TRUE(is_held_by(0, "job"));
}

}  // namespace
}  // namespace dlock::test
