// Many that want the same lock at once.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <map>
#include <mutex>
#include <thread>

#include "redlock_fixture.hpp"

namespace dlock::test {
namespace {

class RedlockContention : public RedlockTest {
 protected:
  /// How often each command was executed, on all servers together; with those of scripts.
  std::map<std::string, long> commands() const {
    std::map<std::string, long> out;
    for (const RedisServer& server : servers) {
      std::istringstream lines(server.command("INFO", "commandstats"));
      for (std::string line; std::getline(lines, line);) {
        const std::string mark = "cmdstat_";
        const auto colon = line.find(":calls=");
        if (!line.starts_with(mark) || colon == std::string::npos) continue;
        out[line.substr(mark.size(), colon - mark.size())] += std::stol(line.substr(colon + 7));
      }
    }
    return out;
  }
  /// What each of `count` clients does, all from the same moment on.
  static void all_at_once(int count, const std::function<void(int, std::latch&)>& what) {
    std::latch start(count);
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back([&, i] { what(i, start); });
    for (std::thread& thread : threads) thread.join();
  }
};

// Says it again until a majority has heard it, as the engine does.
void give_up(Lease& lease) {
  const auto first = release(lease);
  if (first) return;
  EXPECT_NE(first.error().code, Errc::lost);
  EXPECT_TRUE(eventually([&] {
    const auto released = release(lease);
    return released || released.error().code == Errc::lost;
  })) << first.error().message;
}

TEST_F(RedlockContention, ThirtyContendersAllGetInOneAtATime) {
  constexpr int kContenders = 30;
  constexpr int kTimes = 3;
  std::atomic<int> inside = 0;
  std::atomic<int> most_inside = 0;
  std::atomic<int> counter = 0;
  std::mutex mutex;
  std::vector<Millis> waits;
  std::vector<std::uint64_t> fences;
  teach_scripts();
  for (const RedisServer& server : servers) server.command("CONFIG", "RESETSTAT");
  const Deadline before = Clock::now();
  all_at_once(kContenders, [&](int, std::latch& start) {
    auto one = client();
    start.arrive_and_wait();
    for (int i = 0; i < kTimes; ++i) {
      std::unique_ptr<Lease> lease;
      const auto waited = time_of([&] { lease = hold(*one, request("job")); });
      if (!lease) return;
      const int there = inside.fetch_add(1) + 1;
      if (there > most_inside) most_inside = there;
      // On purpose not one step: whoever is in at the same time loses a count.
      const int seen = counter;
      std::this_thread::yield();
      counter = seen + 1;
      {
        const std::lock_guard lock(mutex);
        waits.push_back(waited);
        fences.push_back(lease->fence().value_or(0));
      }
      inside.fetch_sub(1);
      give_up(*lease);
    }
  });
  const auto all = std::chrono::duration_cast<Millis>(Clock::now() - before);
  EXPECT_EQ(most_inside, 1);
  EXPECT_EQ(counter, kContenders * kTimes);
  ASSERT_EQ(waits.size(), static_cast<std::size_t>(kContenders * kTimes));
  EXPECT_TRUE(std::is_sorted(fences.begin(), fences.end()));
  EXPECT_EQ(std::adjacent_find(fences.begin(), fences.end()), fences.end());
  std::sort(waits.begin(), waits.end());
  auto asked = commands();
  const double scripts = static_cast<double>(asked["evalsha"] + asked["eval"]);
  const double others =
      static_cast<double>(asked["subscribe"] + asked["client|id"] + asked["client|tracking"]);
  report("30 contenders, 90 acquisitions: in all", all);
  report("median wait", waits[waits.size() / 2]);
  report("worst wait", waits.back());
  report("scripts for one acquisition and release", scripts / (kContenders * kTimes), "");
  report("other commands for one", others / (kContenders * kTimes), "");
  EXPECT_LT(waits.back(), Millis{10'000});
  EXPECT_LT(scripts / (kContenders * kTimes), 100);
  EXPECT_TRUE(only_counters_are_left());
}

// Nobody waits yet: all ask at once, and the votes are split.
TEST_F(RedlockContention, SplitVotesAreResolvedSoon) {
  constexpr int kContenders = 6;
  std::vector<std::unique_ptr<Backend>> clients;
  for (int i = 0; i < kContenders; ++i) clients.push_back(client());
  for (const auto& one : clients) let_finish(*one);
  std::vector<Millis> firsts;
  for (int round = 0; round < 20; ++round) {
    const std::string key = "job" + std::to_string(round);
    std::mutex mutex;
    std::vector<Millis> waits;
    all_at_once(kContenders, [&](int number, std::latch& start) {
      start.arrive_and_wait();
      std::unique_ptr<Lease> lease;
      const auto waited =
          time_of([&] { lease = hold(*clients[static_cast<unsigned>(number)], request(key)); });
      ASSERT_TRUE(lease);
      EXPECT_TRUE(release(*lease));
      const std::lock_guard lock(mutex);
      waits.push_back(waited);
    });
    ASSERT_EQ(waits.size(), static_cast<std::size_t>(kContenders));
    firsts.push_back(*std::min_element(waits.begin(), waits.end()));
  }
  std::sort(firsts.begin(), firsts.end());
  report("6 at once, until the first is in: median", firsts[firsts.size() / 2]);
  report("6 at once, until the first is in: worst", firsts.back());
  EXPECT_LT(firsts[firsts.size() / 2], Millis{200});
  EXPECT_LT(firsts.back(), Millis{2'000});
}

// Of those that ask only once, one gets it, unless somebody has it already.
TEST_F(RedlockContention, OfThoseThatAskOnceExactlyOneGetsIt) {
  constexpr int kContenders = 6;
  std::vector<std::unique_ptr<Backend>> clients;
  for (int i = 0; i < kContenders; ++i) clients.push_back(client());
  for (const auto& one : clients) let_finish(*one);
  for (int round = 0; round < 10; ++round) {
    const std::string key = "job" + std::to_string(round);
    std::mutex mutex;
    std::vector<std::unique_ptr<Lease>> granted;
    all_at_once(kContenders, [&](int number, std::latch& start) {
      start.arrive_and_wait();
      auto lease = try_once(*clients[static_cast<unsigned>(number)], request(key));
      if (!lease) {
        EXPECT_EQ(lease.error().code, Errc::busy) << lease.error().message;
        return;
      }
      const std::lock_guard lock(mutex);
      granted.push_back(std::move(*lease));
    });
    ASSERT_EQ(granted.size(), 1u) << round;
    EXPECT_TRUE(release(*granted[0]));
  }
}

TEST_F(RedlockContention, ContendersGetInWhileTwoServersAreStopped) {
  constexpr int kContenders = 10;
  std::atomic<int> inside = 0;
  std::atomic<int> granted = 0;
  strike(0b01010, Death::stopped);
  const auto took = time_of([&] {
    all_at_once(kContenders, [&](int, std::latch& start) {
      auto one = client();
      start.arrive_and_wait();
      auto lease = hold(*one, request("job"));
      if (!lease) return;
      EXPECT_EQ(inside.fetch_add(1), 0);
      ++granted;
      std::this_thread::yield();
      inside.fetch_sub(1);
      EXPECT_TRUE(release(*lease));
    });
  });
  heal(0b01010, Death::stopped);
  report("10 contenders with two servers stopped: in all", took);
  EXPECT_EQ(granted, kContenders);
}

TEST_F(RedlockContention, NoMoreThanTheSlotsAreInAtOnce) {
  constexpr int kContenders = 12;
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::atomic<int> granted = 0;
  all_at_once(kContenders, [&](int, std::latch& start) {
    auto one = client();
    start.arrive_and_wait();
    for (int i = 0; i < 3; ++i) {
      auto lease = hold(*one, slots("job", 2));
      if (!lease) return;
      const int there = inside.fetch_add(1) + 1;
      if (there > most) most = there;
      ++granted;
      std::this_thread::yield();
      inside.fetch_sub(1);
      EXPECT_TRUE(release(*lease));
    }
  });
  EXPECT_EQ(granted, kContenders * 3);
  EXPECT_LE(most, 2);
}

}  // namespace
}  // namespace dlock::test
