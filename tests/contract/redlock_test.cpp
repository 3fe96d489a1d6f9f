// What only redlock promises, on five real servers.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "redis_fixture.hpp"

namespace dlock::test {
namespace {

constexpr unsigned kServers = 5;

std::unique_ptr<Backend> open_redlock(Target target) {
  target.url.scheme = "redlock";
  auto backend = find_backend("redlock")->open(target, soon(), Cancel());
  if (backend) return std::move(*backend);
  ADD_FAILURE() << backend.error().message;
  return nullptr;
}

class Redlock : public testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server is not installed";
    for (unsigned i = 0; i < kServers; ++i) servers.push_back(std::make_unique<RedisServer>());
    a = client();
  }
  std::unique_ptr<Backend> client(Millis patience = Millis{5'000}) const {
    Target target{.connect_timeout = patience};
    for (const auto& server : servers) {
      target.url.hosts.push_back({"127.0.0.1", static_cast<std::uint16_t>(server->port())});
    }
    return open_redlock(std::move(target));
  }
  static unsigned count(unsigned mask) { return static_cast<unsigned>(__builtin_popcount(mask)); }
  void pause(unsigned mask) const {
    for (unsigned i = 0; i < kServers; ++i) {
      if ((mask >> i & 1U) != 0) servers[i]->pause();
    }
  }
  void resume(unsigned mask) const {
    for (unsigned i = 0; i < kServers; ++i) {
      if ((mask >> i & 1U) != 0) servers[i]->resume();
    }
  }
  std::string shown(unsigned i) const {
    return "redis 127.0.0.1:" + std::to_string(servers[i]->port());
  }
  bool nothing_is_left(const std::string& key) const {
    return eventually([&] {
      return std::all_of(servers.begin(), servers.end(), [&](const auto& server) {
        return server->command("EXISTS", "dlock:" + key) == "0";
      });
    });
  }

  std::vector<std::unique_ptr<RedisServer>> servers;
  std::unique_ptr<Backend> a;
};

TEST_F(Redlock, AnyMajorityIsEnoughToAcquireAndNothingLess) {
  for (unsigned mask = 0; mask < 1U << kServers; ++mask) {
    SCOPED_TRACE(mask);
    const std::string key = "acquire " + std::to_string(mask);
    pause(mask);
    auto other = client(Millis{300});
    const Deadline before = Clock::now();
    auto lease = try_once(*other, request(key));
    EXPECT_LT(Clock::now() - before, Millis{3'000});
    if (count(mask) <= 2) {
      ASSERT_TRUE(lease) << lease.error().message;
      EXPECT_TRUE(renew(**lease));
      EXPECT_TRUE(release(**lease));
    } else {
      ASSERT_FALSE(lease);
      EXPECT_EQ(lease.error().code, Errc::unreachable);
      for (unsigned i = 0; i < kServers; ++i) {
        const bool named = lease.error().message.find(shown(i)) != std::string::npos;
        EXPECT_EQ(named, (mask >> i & 1U) != 0) << lease.error().message;
      }
    }
    resume(mask);
  }
}

TEST_F(Redlock, AnyMajorityIsEnoughToRenewAndSilenceIsNoLoss) {
  for (unsigned mask = 0; mask < 1U << kServers; ++mask) {
    SCOPED_TRACE(mask);
    auto lease = hold(*a, request("renew " + std::to_string(mask)));
    ASSERT_TRUE(renew(*lease));
    const Deadline valid_until = lease->valid_until();
    pause(mask);
    if (count(mask) <= 2) {
      // One that was stopped before may still be behind with its answers.
      EXPECT_TRUE(eventually([&] { return static_cast<bool>(renew(*lease)); }));
      EXPECT_GT(lease->valid_until(), valid_until);
    } else {
      const auto outcome = lease->renew(in(600), Cancel());
      ASSERT_FALSE(outcome);
      EXPECT_EQ(outcome.error().code, Errc::unreachable) << outcome.error().message;
      EXPECT_EQ(lease->valid_until(), valid_until);
    }
    resume(mask);
    EXPECT_TRUE(eventually([&] { return static_cast<bool>(renew(*lease)); }));
    EXPECT_TRUE(release(*lease));
  }
}

TEST_F(Redlock, AServerThatIsKnownToBeSlowIsNotWaitedFor) {
  EXPECT_TRUE(release(*hold(*a, request("job"))));
  pause(0b00101);
  const auto all_three = [&] {
    auto lease = hold(*a, request("job"));
    EXPECT_TRUE(renew(*lease));
    EXPECT_TRUE(release(*lease));
  };
  const auto first = time_of(all_three);
  EXPECT_LT(first, Millis{3 * 200 + 500});
  EXPECT_TRUE(eventually([&] { return time_of(all_three) < Millis{100}; }));
  resume(0b00101);
}

TEST_F(Redlock, AServerThatForgetsIsNotGivenTheLockAgainAndTokensGrow) {
  auto lease = hold(*a, request("job"));
  const std::uint64_t fence = *lease->fence();
  servers[0]->command("FLUSHALL");
  servers[3]->kill();
  servers[3]->start_again();
  ASSERT_TRUE(eventually([&] { return static_cast<bool>(renew(*lease)); }));
  EXPECT_TRUE(renew(*lease));
  for (const unsigned empty : {0U, 3U}) {
    EXPECT_EQ(servers[empty]->command("EXISTS", "dlock:job"), "0");
  }
  EXPECT_TRUE(release(*lease));
  lease = hold(*a, request("job"));
  EXPECT_GT(*lease->fence(), fence);
  for (const unsigned empty : {1U, 2U, 4U}) servers[empty]->command("FLUSHALL");
  EXPECT_EQ(renew(*lease).error().code, Errc::lost);
}

TEST_F(Redlock, WhatAMinorityHoldsIsInNobodysWay) {
  for (const unsigned taken : {0U, 4U}) {
    servers[taken]->command("SET", "dlock:job", "somebody", "PX", "60000");
  }
  auto lease = hold(*a, request("job"));
  const LockInfo info = inspect(*client(), "job");
  ASSERT_EQ(info.holders.size(), 1u);
  EXPECT_EQ(info.nodes_agreeing, 3u);
  EXPECT_EQ(info.nodes_total, 5u);
  EXPECT_EQ(info.remarks.size(), 2u);
  EXPECT_TRUE(release(*lease));
  for (const unsigned taken : {0U, 4U}) {
    EXPECT_EQ(servers[taken]->command("GET", "dlock:job"), "somebody");
  }
}

// What npm's redlock and others do on the same servers.
TEST_F(Redlock, AMajorityOfAnotherProgramKeepsUsOutAndAFailedTryLeavesNothing) {
  for (const unsigned taken : {0U, 2U, 4U}) {
    servers[taken]->command("SET", "dlock:job", "theirs", "NX", "PX", "60000");
  }
  EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
  for (const unsigned free : {1U, 3U}) {
    EXPECT_TRUE(eventually([&] { return servers[free]->command("EXISTS", "dlock:job") == "0"; }));
  }
  Waiting waiting(client(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  for (const unsigned taken : {0U, 2U, 4U}) servers[taken]->command("DEL", "dlock:job");
  auto lease = waiting.lease();
  ASSERT_TRUE(lease);
  for (const auto& server : servers) {
    EXPECT_NE(server->command("SET", "dlock:job", "theirs", "NX", "PX", "60000"), "OK");
  }
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(nothing_is_left("job"));
}

TEST_F(Redlock, AForceReleaseReachesTheHolderThoughTheFirstServersAreDown) {
  const Request broken = request("job");
  auto lease = hold(*a, broken);
  const int events = lease->event_fd();
  ASSERT_GE(events, 0);
  EXPECT_TRUE(renew(*lease));
  servers[0]->kill();
  servers[1]->kill();
  EXPECT_TRUE(eventually([&] { return static_cast<bool>(renew(*lease)); }));
  EXPECT_TRUE(*client()->force_release("job", broken.owner.id, "ops: hangs", soon()));
  EXPECT_TRUE(util::wait_readable(events, in(5'000)));
  const auto outcome = renew(*lease);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::lost);
  EXPECT_NE(outcome.error().message.find("ops: hangs"), std::string::npos);

  servers[2]->kill();
  const auto minority = client()->force_release("job", broken.owner.id, "ops", soon());
  ASSERT_FALSE(minority);
  EXPECT_EQ(minority.error().code, Errc::unreachable);
  EXPECT_NE(minority.error().message.find("2 of 5 servers answered"), std::string::npos)
      << minority.error().message;
}

TEST_F(Redlock, AServerThatIsListedTwiceOrAReplicaIsRefused) {
  Target twice;
  for (const char* text : {"redis://127.0.0.1:", "redis://localhost:"}) {
    twice.servers.push_back(parse_url(text + std::to_string(servers[0]->port())).value());
  }
  auto lease = try_once(*open_redlock(twice), request("job"));
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().code, Errc::invalid);
  EXPECT_NE(lease.error().message.find("are the same server"), std::string::npos)
      << lease.error().message;
  EXPECT_TRUE(nothing_is_left("job"));

  for (const unsigned i : {1U, 2U, 3U}) {
    servers[i]->command("REPLICAOF", "127.0.0.1", std::to_string(servers[0]->port()));
  }
  lease = try_once(*client(), request("job"));
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().code, Errc::invalid);
  EXPECT_NE(lease.error().message.find("is a replica"), std::string::npos) << lease.error().message;
}

TEST_F(Redlock, EachServerCanHaveItsOwnPasswordUserAndDatabase) {
  servers[0]->command("CONFIG", "SET", "requirepass", "first");
  servers[1]->command("ACL", "SETUSER", "second", "on", ">its own", "~*", "&*", "+@all");
  Target target;
  const auto add = [&](unsigned i, const std::string& user, const std::string& path) {
    target.servers.push_back(
        parse_url("redis://" + user + "127.0.0.1:" + std::to_string(servers[i]->port()) + path)
            .value());
  };
  add(0, ":first@", "");
  add(1, "second:its%20own@", "/3");
  add(2, "", "/1");
  auto backend = open_redlock(target);
  auto lease = hold(*backend, request("job"));
  ASSERT_TRUE(lease);
  EXPECT_EQ(inspect(*backend, "job").nodes_agreeing, 3u);
  EXPECT_EQ(servers[2]->command("EXISTS", "dlock:job"), "0") << "in database 0";
  EXPECT_TRUE(release(*lease));
}

TEST_F(Redlock, ThirtyContendersAllGetInAndNoneTwice) {
  std::atomic<int> counter = 0;  // read and written in two steps: only the lock makes that one
  std::vector<std::thread> threads;
  std::vector<Millis> waits(30);
  for (auto& waited : waits) {
    threads.emplace_back([&] {
      auto mine = client();
      waited = time_of([&] {
        auto lease = mine->acquire(request("counter"), {.until = soon()});
        ASSERT_TRUE(lease) << lease.error().message;
        const int before = counter;
        std::this_thread::yield();
        counter = before + 1;
        EXPECT_TRUE(release(**lease));
      });
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter, 30);
  std::sort(waits.begin(), waits.end());
  RecordProperty("median_ms", static_cast<int>(waits[15].count()));
  RecordProperty("worst_ms", static_cast<int>(waits[29].count()));
  EXPECT_TRUE(nothing_is_left("counter"));
}

}  // namespace
}  // namespace dlock::test
