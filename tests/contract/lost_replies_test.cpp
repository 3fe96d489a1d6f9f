// The service has done what it was asked, and the answer is lost with the connection, whichever
// answer that is; or it does what it was asked when the client has long given up.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "client.hpp"
#include "fixtures.hpp"
#include "support/proxy/proxy.hpp"

namespace dlock::test {
namespace {

class LostReplies : public testing::TestWithParam<ServiceKind> {
 protected:
  static std::vector<Request> each_mode() {
    return {request("job"), shared("job"), slots("job", 1)};
  }
  /// A request that has to wait while `held` is granted.
  static Request rival_of(const Request& held) {
    return held.mode == Mode::slots ? slots(held.key, held.slots) : request(held.key);
  }
  std::unique_ptr<Backend> client() { return service->connect(); }
  std::unique_ptr<Backend> through_proxy() { return service->connect_to(proxy.port()); }
  /// That to the next request that is about a lock, but for the first `skip`.
  void lose_reply(int skip = 0) { proxy.lose_reply_to(service->in_requests(), 1, skip); }
  bool waiters_are(std::size_t count) {
    return eventually([&] { return inspect(*b, "job").waiters->size() == count; });
  }
  bool nothing_is_left() {
    return eventually([&] {
      const auto left = b->list("", soon());
      return left && left.value().empty();
    });
  }
  void has_its_turn(Waiting& waiting) {
    const auto lease = waiting.lease();
    ASSERT_TRUE(lease);
    proxy.pass();
    EXPECT_TRUE(renew(*lease));
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(nothing_is_left());
  }
  // A release that was carried out without an answer finds the lock gone.
  static void release_for_certain(Lease& lease) {
    const auto released = patiently([&] { return release(lease); });
    EXPECT_TRUE(released || released.error().code == Errc::lost) << released.error().message;
  }

  /// The service is asked after the client has given up.
  void renew_late(Lease& lease) {
    proxy.delay_requests(Millis{1'000});
    EXPECT_EQ(code_of(lease.renew(in(100), Cancel())), Errc::unreachable);
    proxy.pass();
  }
  /// For almost a minute yet, when all that was sent through the proxy has been answered.
  void expect_kept(bool has_ended) {
    ASSERT_TRUE(eventually([&] { return proxy.open_connections() == 0; }));
    const LockInfo lock = inspect(*a, "job");
    ASSERT_EQ(lock.holders.size(), 1u);
    EXPECT_GT(lock.holders[0].expires, Millis{50'000});
    EXPECT_EQ(lock.holders[0].owner.ended, has_ended);
    EXPECT_TRUE(a->force_release("job", lock.holders[0].owner.id, {"test"}, soon()));
  }
  static std::unique_ptr<Lease> resume(Backend& backend, Millis ttl) {
    const LockInfo lock = inspect(backend, "job");
    auto lease = backend.resume(lock, lock.holders.at(0), ttl, soon());
    return lease ? std::move(*lease) : nullptr;
  }

  const std::unique_ptr<Service> service = GetParam().start();
  Proxy proxy{"127.0.0.1", service->servers().at(0)->port()};
  const std::unique_ptr<Backend> a = client();
  const std::unique_ptr<Backend> b = client();
};

// Of a key that nobody knew before, and of one that is known.
TEST_P(LostReplies, AnAcquireIsGrantedOnce) {
  std::uint64_t fence = 0;
  for (const Mode mode : {Mode::exclusive, Mode::shared, Mode::slots}) {
    long lost = 0;
    for (int turn = 0; turn < 12; ++turn) {
      const int skip = turn / 2;
      const std::string key = turn % 2 == 0 ? "new " + std::to_string(skip) : "job";
      SCOPED_TRACE(key + ' ' + std::string(mode_name(mode)) + ' ' + std::to_string(skip));
      const Request wanted = request(key, mode);
      const auto own = through_proxy();
      const long before = proxy.lost_replies();
      lose_reply(skip);
      std::unique_ptr<Lease> lease;
      EXPECT_LT(time_of([&] { lease = hold(*own, wanted); }),
                here(Millis{5'000}));  // not for itself
      ASSERT_TRUE(lease);
      EXPECT_EQ(inspect(*b, key).holders.size(), 1u);
      EXPECT_EQ(code_of(try_once(*b, rival_of(wanted))), Errc::busy);
      if (key == "job") {
        EXPECT_GT(*lease->fence(), fence);
        fence = *lease->fence();
      }
      lost += proxy.lost_replies() - before;
      proxy.pass();
      EXPECT_TRUE(renew(*lease));
      EXPECT_TRUE(release(*lease));
      EXPECT_TRUE(nothing_is_left());
    }
    EXPECT_GE(lost, 2);
  }
}

// Where one reply wakes it, it may lose its place by that.
TEST_P(LostReplies, AWaiterGetsTheLock) {
  for (int skip = 0; skip < 6; ++skip) {
    SCOPED_TRACE(skip);
    auto lease = hold(*a, request("job"));
    lose_reply(skip);
    Waiting waiting(through_proxy(), request("job"));
    ASSERT_TRUE(waiting.blocked());
    ASSERT_TRUE(waiters_are(1));
    EXPECT_FALSE(waiting.done(20));
    EXPECT_TRUE(release(*lease));
    EXPECT_LT(time_of([&] { lease = waiting.lease(); }), here(Millis{5'000}));
    ASSERT_TRUE(lease);
    proxy.pass();
    EXPECT_EQ(inspect(*b, "job").holders.size(), 1u);
    release_for_certain(*lease);
    EXPECT_TRUE(nothing_is_left());
  }
}

TEST_P(LostReplies, ATryLeavesNothing) {
  for (int skip = 0; skip < 5; ++skip) {
    SCOPED_TRACE(skip);
    lose_reply(skip);
    const auto lease = try_once(*through_proxy(), request("job"));
    proxy.pass();
    if (lease) {
      EXPECT_TRUE(release(*lease.value()));
    } else {
      EXPECT_EQ(lease.error().code, Errc::unreachable) << lease.error().message;
    }
    EXPECT_TRUE(nothing_is_left());
    EXPECT_TRUE(is_free_for(*b, request("job")));
  }
}

TEST_P(LostReplies, ARenewalKeepsTheLease) {
  for (const Mode mode : {Mode::exclusive, Mode::shared, Mode::slots}) {
    for (int skip = 0; skip < 2; ++skip) {
      auto lease = hold(*through_proxy(), request("job", mode));
      const Deadline valid_until = lease->valid_until();
      lose_reply(skip);
      if (const auto renewed = renew(*lease); !renewed) {
        EXPECT_EQ(renewed.error().code, Errc::unreachable) << renewed.error().message;
        EXPECT_EQ(lease->valid_until(), valid_until);
      }
      EXPECT_TRUE(eventually([&] { return renew(*lease).has_value(); }));
      EXPECT_GT(lease->valid_until(), valid_until);
      EXPECT_EQ(inspect(*b, "job").holders.size(), 1u);
      proxy.pass();
      release_for_certain(*lease);
      EXPECT_TRUE(nothing_is_left());
    }
  }
}

TEST_P(LostReplies, AReleaseFreesTheLockAndNoOther) {
  for (const Request& wanted : each_mode()) {
    auto lease = hold(*through_proxy(), wanted);
    Waiting waiting(client(), rival_of(wanted));
    ASSERT_TRUE(waiters_are(1));
    const long before = proxy.lost_replies();
    lose_reply();
    release_for_certain(*lease);
    EXPECT_EQ(proxy.lost_replies(), before + 1);
    has_its_turn(waiting);
  }
}

TEST_P(LostReplies, AForceReleaseBreaksOneGrant) {
  for (const Request& wanted : each_mode()) {
    auto lease = hold(*a, wanted);
    Waiting waiting(client(), rival_of(wanted));
    ASSERT_TRUE(waiters_are(1));
    lose_reply();
    const auto own = through_proxy();
    auto broken = own->force_release("job", lease->owner_id(), {"test"}, soon());
    if (!broken) {
      EXPECT_EQ(broken.error().code, Errc::unreachable) << broken.error().message;
      proxy.pass();
      broken = own->force_release("job", lease->owner_id(), {"test"}, soon());
    }
    EXPECT_TRUE(broken) << broken.error().message;
    EXPECT_EQ(code_of(renew(*lease)), Errc::lost);
    EXPECT_EQ(code_of(release(*lease)), Errc::lost);
    has_its_turn(waiting);
  }
}

// Of a job that has ended, and whose lock is kept for a while (--min-hold).
TEST_P(LostReplies, ALateRenewalShortensNothing) {
  if (service->traits().ends_on != Traits::EndsOn::ttl) return;
  for (const Mode mode : {Mode::exclusive, Mode::shared, Mode::slots}) {
    SCOPED_TRACE(mode_name(mode));
    auto own = through_proxy();
    auto lease = hold(*own, request("job", mode, 1, Millis{4'000}));
    ASSERT_TRUE(lease && renew(*lease));
    renew_late(*lease);
    EXPECT_TRUE(lease->end_command(in(60'000), soon(), Cancel()));
    lease.reset();
    own.reset();
    expect_kept(true);
  }
}

TEST_P(LostReplies, NorDoesThatOfAShorterTtlFromElsewhere) {
  if (!service->traits().resumes) return;
  for (const Mode mode : {Mode::exclusive, Mode::shared, Mode::slots}) {
    SCOPED_TRACE(mode_name(mode));
    hold(*client(), request("job", mode, 1, Millis{30'000}));
    auto own = through_proxy();
    auto early = resume(*own, Millis{4'000});
    auto late = resume(*b, Millis{90'000});
    ASSERT_TRUE(early && late);
    renew_late(*early);
    EXPECT_TRUE(renew(*late));
    early.reset();
    own.reset();
    expect_kept(false);
  }
}

// A holder of a row lock has lost it by the cut, and learns so later: only its numbers are
// compared.  A grant that nobody heard of is in the way for its 5 s.
TEST_P(LostReplies, WhateverIsCutWhenTwoNeverHoldItAndAllGoesOn) {
  std::atomic<bool> stop = false;
  std::atomic<int> holders = 0;
  std::atomic<int> granted = 0;
  const auto seed = static_cast<unsigned>(Clock::now().time_since_epoch().count());
  SCOPED_TRACE(seed);
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(seed + thread);
      const auto own = through_proxy();
      std::uint64_t fence = 0;
      while (!stop) {
        const auto until = in(static_cast<int>(random() % 200));
        auto lease =
            own->acquire(request("job", Mode::exclusive, 1, Millis{5'000}), {.until = until});
        if (!lease) {
          EXPECT_TRUE(lease.error().code == Errc::busy || lease.error().code == Errc::unreachable)
              << lease.error().message;
          continue;
        }
        EXPECT_GT(*(*lease)->fence(), fence);
        fence = *(*lease)->fence();
        ++granted;
        EXPECT_EQ(++holders, 1);
        if (random() % 2 == 0) (void)(*lease)->renew(in(500), Cancel());
        --holders;
        for (auto released = release(**lease); !released; released = release(**lease)) {
          if (released.error().code == Errc::lost) break;
          if (Clock::now() >= (*lease)->valid_until()) break;
        }
      }
    });
  }
  proxy.cut_often(seed, [&] { return granted > 5; });
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_GT(granted, 5);
  // At the latest when the lease of a grant that nobody heard of ends.
  EXPECT_TRUE(release(*hold(*a, request("job"))));
  EXPECT_TRUE(nothing_is_left());
}

// A table is missing, and it cannot be made over a connection that is lost.
using SqlLostReplies = LostReplies;
TEST_P(SqlLostReplies, TheFirstOfAllIsGrantedAfterARollbackWithoutAnAnswer) {
  const auto own = through_proxy();
  proxy.lose_reply_to("ROLLBACK");
  const auto lease = hold(*own, request("job"));
  EXPECT_EQ(proxy.lost_replies(), 1);
  proxy.pass();
  ASSERT_TRUE(lease);
  EXPECT_TRUE(release(*lease));
}

// It is not given back: that would cost the place in the queue, and a fencing number.
TEST_P(SqlLostReplies, AGrantThatWasNotHeardIsKept) {
  const Request wanted = request("job");
  const auto own = through_proxy();
  proxy.lose_reply_to(", 'holder', ");
  const auto lease = hold(*own, wanted);
  EXPECT_EQ(proxy.lost_replies(), 1);
  proxy.pass();
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->owner_id(), wanted.owner.id);
  EXPECT_TRUE(renew(*lease));
  EXPECT_TRUE(release(*lease));
}
INSTANTIATE_TEST_SUITE_P(, SqlLostReplies, testing::ValuesIn(sql_kinds()),
                         [](const auto& it) { return it.param.name; });

INSTANTIATE_TEST_SUITE_P(, LostReplies, testing::ValuesIn(one_server_kinds()),
                         [](const auto& it) { return it.param.name; });

}  // namespace
}  // namespace dlock::test
