// What `dlock id` promises, for every backend that has numbers: none is ever given twice.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "client.hpp"
#include "fixtures.hpp"
#include "support/fake_clock.hpp"
#include "support/redis_server.hpp"
#include "support/test_registry.hpp"

namespace dlock::test {
namespace {

// A sanitizer makes each wait for a file slow.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr unsigned kThreads = 2;
#else
constexpr unsigned kThreads = 8;
#endif
constexpr unsigned kTakes = 140;  // times eight is more than there are workers

// The first of the numbers; 0, and a test failure, if there are none.
std::uint64_t take(Backend& backend, std::string_view name, std::uint64_t count = 1) {
  const auto first = backend.take_numbers(name, count, soon());
  if (first) return first.value();
  ADD_FAILURE() << first.error().message;
  return 0;
}

// None, and a test failure, if it is refused.
std::optional<IdWindow> lease(Backend& backend, int ms = 1) {
  const auto window = backend.lease_window(Millis{ms}, soon());
  if (window) return window.value();
  ADD_FAILURE() << window.error().message;
  return std::nullopt;
}

template <class T>
Errc refusal_of(const Result<T>& result) {
  EXPECT_FALSE(result) << "it went well";
  return result ? Errc::cancelled : result.error().code;
}

/// Windows of all threads.
class Windows {
 public:
  void add(const std::optional<IdWindow>& window) {
    ASSERT_TRUE(window);
    EXPECT_LT(window->worker, kWorkers);
    EXPECT_LT(window->start, window->end);
    const std::lock_guard lock(mutex_);
    of_worker_[window->worker].emplace_back(window->start, window->end);
  }
  void expect_apart() {
    for (auto& [worker, windows] : of_worker_) {
      std::sort(windows.begin(), windows.end());
      for (std::size_t i = 1; i < windows.size(); ++i) {
        EXPECT_LE(windows[i - 1].second, windows[i].first) << "worker " << worker;
      }
    }
  }
  std::size_t workers() const { return of_worker_.size(); }

 private:
  std::mutex mutex_;
  std::map<unsigned, std::vector<std::pair<std::int64_t, std::int64_t>>> of_worker_;
};

template <class Job>
void in_threads(Job job) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) threads.emplace_back([&job, i] { job(i); });
  for (std::thread& thread : threads) thread.join();
}

class Numbers : public testing::TestWithParam<ServiceKind> {
 protected:
  std::unique_ptr<Service> service = GetParam().start();
  std::unique_ptr<Backend> a = service->connect();
  std::unique_ptr<Backend> b = service->connect();

  bool is_sharded() const { return GetParam().name.starts_with("sharded"); }
  bool has_numbers() const { return service->traits().remembers && !is_sharded(); }

  // Leases so much that each worker's window ends later than may be.
  void use_up(Windows& windows) {
    in_threads([&](unsigned) {
      const auto own = service->connect();
      for (unsigned i = 0; i < kWorkers / kThreads; ++i) windows.add(lease(*own, 3'600'000));
    });
  }
};

TEST_P(Numbers, ABackendWithoutThemSaysSo) {
  if (has_numbers()) return;
  EXPECT_EQ(refusal_of(a->take_numbers("job", 1, soon())), Errc::unsupported);
  EXPECT_EQ(refusal_of(a->lease_window(Millis{1}, soon())), Errc::unsupported);
  if (is_sharded()) return;
  EXPECT_EQ(refusal_of(a->prepare_marks("job", soon())), Errc::unsupported);
  EXPECT_EQ(refusal_of(a->find_mark({"job", ""}, soon())), Errc::unsupported);
  EXPECT_EQ(refusal_of(a->list_marks("", soon())), Errc::unsupported);
  EXPECT_EQ(refusal_of(a->forget_mark({"job", ""}, soon())), Errc::unsupported);
}

TEST_P(Numbers, BeginWithOneAndGrow) {
  if (!has_numbers()) return;
  EXPECT_EQ(take(*a, "job"), 1u);
  EXPECT_EQ(take(*a, "job"), 2u);
  EXPECT_EQ(take(*b, "job"), 3u);
  EXPECT_EQ(take(*a, "job"), 4u);
}

TEST_P(Numbers, SeveralAreTakenInOneStep) {
  if (!has_numbers()) return;
  EXPECT_EQ(take(*a, "job", 1'000'000), 1u);
  EXPECT_EQ(take(*b, "job", 5), 1'000'001u);
  EXPECT_EQ(take(*a, "job"), 1'000'006u);
}

TEST_P(Numbers, ThreadsGetEachOnceAndInOrder) {
  if (!has_numbers()) return;
  std::mutex mutex;
  std::set<std::uint64_t> all;
  std::uint64_t count = 0;
  in_threads([&](unsigned thread) {
    const auto own = service->connect();
    std::uint64_t last = 0;
    for (unsigned i = 0; i < kTakes / 4; ++i) {
      const unsigned some = 1 + (i + thread) % 3;
      const std::uint64_t first = take(*own, "job", some);
      EXPECT_GT(first, last);
      last = first + some - 1;
      const std::lock_guard lock(mutex);
      count += some;
      for (std::uint64_t number = first; number <= last; ++number) {
        EXPECT_TRUE(all.insert(number).second) << number << " was given twice";
      }
    }
  });
  EXPECT_EQ(all.size(), count);
  EXPECT_EQ(take(*a, "job"), count + 1) << "some are missing";
}

TEST_P(Numbers, AFullCounterGivesNothing) {
  if (!has_numbers()) return;
  EXPECT_EQ(take(*a, "job", kLastNumber - 5), 1u);
  EXPECT_EQ(refusal_of(a->take_numbers("job", 6, soon())), Errc::invalid);
  EXPECT_EQ(refusal_of(a->take_numbers("job", kLastNumber, soon())), Errc::invalid);
  EXPECT_EQ(take(*b, "job", 5), kLastNumber - 4);
  EXPECT_EQ(refusal_of(b->take_numbers("job", 1, soon())), Errc::invalid);
  EXPECT_EQ(refusal_of(a->take_numbers("job", 1, soon())), Errc::invalid);
  EXPECT_EQ(take(*a, "other"), 1u);
}

TEST_P(Numbers, EachNameHasItsOwn) {
  if (!has_numbers()) return;
  std::string longest;
  while (longest.size() < 254) longest += "é";
  std::vector<std::string> names{"job",     "Job",      "job ", " job",    "j",      "a/b",
                                 "a%2Fb",   "..",       ".",    "{x}",     "x",      "x}:number",
                                 "workers", "~workers", "%ids", "'; -- x", "job~0",  "zookeeper",
                                 "é",       "e\u0301",  "\\",   longest,   "job~ids"};
  names.push_back(longest + 'x');
  for (const std::string& name : names) EXPECT_EQ(take(*a, name), 1u) << name;
  for (const std::string& name : names) EXPECT_EQ(take(*b, name), 2u) << name;
  if (has_numbers()) {
    EXPECT_TRUE(lease(*a));
  }
  for (const std::string& name : names) EXPECT_EQ(take(*a, name), 3u) << name;
}

TEST_P(Numbers, HaveNothingToDoWithLocks) {
  if (!has_numbers()) return;
  EXPECT_EQ(take(*a, "job"), 1u);
  EXPECT_TRUE(is_free_for(*a, request("job")));
  auto held = hold(*a, request("job"));
  EXPECT_EQ(take(*b, "job"), 2u);
  if (has_numbers()) {
    EXPECT_TRUE(lease(*b));
  }
  const auto locks = a->list("", soon());
  ASSERT_TRUE(locks) << locks.error().message;
  EXPECT_EQ(locks.value().size(), 1u);
  EXPECT_TRUE(release(*held));
  EXPECT_EQ(take(*a, "job"), 3u);
  const auto none = a->list("", soon());
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_TRUE(none.value().empty());
  EXPECT_TRUE(inspect(*a, "job").holders.empty());
}

TEST_P(Numbers, WindowsOfAWorkerNeverOverlap) {
  if (!has_numbers()) return;
  Windows windows;
  in_threads([&](unsigned) {
    const auto own = service->connect();
    for (unsigned i = 0; i < kTakes; ++i) windows.add(lease(*own, 1 + static_cast<int>(i % 5)));
  });
  windows.expect_apart();
  EXPECT_LE(windows.workers(), std::min(kThreads * kTakes, kWorkers));
}

TEST_P(Numbers, AWindowStartsNow) {
  if (!has_numbers()) return;
  const auto now = [] {
    return std::chrono::duration_cast<Millis>(std::chrono::system_clock::now().time_since_epoch()) -
           Millis{kIdEpochMs};
  };
  const Millis before = now();
  const auto window = lease(*a, 7);
  const Millis after = now();
  ASSERT_TRUE(window);
  EXPECT_LE(before.count() - 1, window->start);
  EXPECT_GE(after.count() + 1, window->start);
  EXPECT_EQ(window->end, window->start + 7);
}

TEST_P(Numbers, AWindowFarAheadOfTheClockIsRefused) {
  if (!has_numbers()) return;
  Windows windows;
  use_up(windows);
  EXPECT_EQ(windows.workers(), kWorkers);
  EXPECT_EQ(refusal_of(a->lease_window(Millis{1}, soon())), Errc::busy);
  EXPECT_EQ(refusal_of(b->lease_window(Millis{1}, soon())), Errc::busy);
  windows.expect_apart();
}

TEST_P(Numbers, ShardsRefuse) {
  if (!service->traits().remembers || !is_sharded()) return;
  EXPECT_EQ(refusal_of(a->take_numbers("job", 1, soon())), Errc::unsupported);
  EXPECT_EQ(refusal_of(a->lease_window(Millis{1}, soon())), Errc::unsupported);
}

// Where data outlive a server.
TEST_P(Numbers, OutliveARestart) {
  const auto servers = service->servers();
  if (!has_numbers() || servers.empty() || GetParam().name == "redis") return;
  Windows windows;
  EXPECT_EQ(take(*a, "job", 10), 1u);
  for (int i = 0; i < 3; ++i) windows.add(lease(*a, 600'000));
  servers[0]->kill();
  servers[0]->start_again();
  const auto later = service->connect();
  EXPECT_EQ(take(*later, "job"), 11u);
  EXPECT_EQ(take(*a, "job"), 12u);
  for (int i = 0; i < 3; ++i) windows.add(lease(*later, 600'000));
  windows.expect_apart();
  EXPECT_EQ(windows.workers(), 6u);
}

INSTANTIATE_TEST_SUITE_P(, Numbers, testing::ValuesIn(service_kinds()),
                         [](const auto& its) { return its.param.name; });

class RedisNumbers : public testing::Test {
 protected:
  void SetUp() override {
    if (find_backend("redis")->open == nullptr || !RedisServer::available()) {
      GTEST_SKIP() << "no redis-server, or dlock was built without it";
    }
  }
};

TEST_F(RedisNumbers, OutliveARestartWhereTheServerKeepsItsData) {
  RedisServer server({.settings = {"appendonly yes", "appendfsync always"}});
  const auto a = open_url(server.url());
  EXPECT_EQ(take(*a, "job", 10), 1u);
  Windows windows;
  for (int i = 0; i < 3; ++i) windows.add(lease(*a, 600'000));
  server.kill();
  server.start_again();
  EXPECT_EQ(take(*a, "job"), 11u);
  for (int i = 0; i < 3; ++i) windows.add(lease(*a, 600'000));
  windows.expect_apart();
  EXPECT_EQ(windows.workers(), 6u);
}

// Whatever the clock does, a window is leased once.
TEST_F(RedisNumbers, AClockThatIsSetBackRepeatsNothing) {
  FakeClock clock;
  RedisServer server({.clock = &clock});
  const auto a = open_url(server.url());
  Windows windows;
  for (const Millis jump : {Millis{-3'600'000}, Millis{3'600'000 - 3'000}, Millis{3'600'000}}) {
    for (unsigned i = 0; i < 100; ++i) windows.add(lease(*a));
    clock.jump(jump);
  }
  for (unsigned i = 0; i < 100; ++i) windows.add(lease(*a));
  windows.expect_apart();
}

TEST_F(RedisNumbers, AClockBefore2025OrAfter2094IsRefused) {
  FakeClock clock;
  RedisServer server({.clock = &clock});
  const auto a = open_url(server.url());
  clock.jump(Millis{-20LL * 366 * 86'400'000});
  EXPECT_EQ(refusal_of(a->lease_window(Millis{1}, soon())), Errc::busy);
  clock.jump(Millis{90LL * 366 * 86'400'000});
  EXPECT_EQ(refusal_of(a->lease_window(Millis{1}, soon())), Errc::invalid);
  EXPECT_EQ(take(*a, "job"), 1u);
}

TEST_F(RedisNumbers, WhatIsNoCounterIsLeftAlone) {
  RedisServer server;
  const auto a = open_url(server.url());
  for (const std::string value : {"hello", "-4", "1.5", "99999999999999999999", "1 x", "1 -4"}) {
    server.command("SET", "{dlock:job}:number", value);
    EXPECT_EQ(refusal_of(a->take_numbers("job", 3, soon())), Errc::conflict) << value;
  }
  server.command("DEL", "{dlock:job}:number");
  server.command("LPUSH", "{dlock:job}:number", "1");
  EXPECT_EQ(refusal_of(a->take_numbers("job", 3, soon())), Errc::conflict);
  server.command("SET", "{dlock:}:workers", "1");
  EXPECT_EQ(refusal_of(a->lease_window(Millis{1}, soon())), Errc::conflict);
  server.command("DEL", "{dlock:}:workers");
  server.command("ZADD", "{dlock:}:workers", "0", "0");
  EXPECT_EQ(refusal_of(a->lease_window(Millis{1}, soon())), Errc::conflict);
}

}  // namespace
}  // namespace dlock::test
