// A lease that is let go in one process and picked up in another, as `dlock acquire` and `dlock
// release` do: for every backend whose locks can live without a process.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "client.hpp"
#include "fixtures.hpp"
#include "util/random_id.hpp"

namespace dlock::test {
namespace {

// Not shorter: of redlock, a quarter of it must be enough for a server of this machine to answer.
constexpr Millis kBriefTtl{1'000};
constexpr Millis kLong{600'000};

class Resume : public testing::TestWithParam<ServiceKind> {
 protected:
  std::unique_ptr<Service> service = GetParam().start();
  const Traits& traits = service->traits();
  std::unique_ptr<Backend> a = service->connect();
  std::unique_ptr<Backend> b = service->connect();

  bool can_be_let_go() const { return traits.resumes; }

  static Request fixed(Mode mode = Mode::exclusive, unsigned slots = 1,
                       Millis ttl = Millis{60'000}) {
    Request out = request("job", mode, slots, ttl);
    out.owner.pid = 0;
    out.owner.kind = Owner::Kind::acquire;
    out.owner.lease = ttl;
    return out;
  }
  std::vector<Request> of_each_mode() const {
    std::vector<Request> out{fixed()};
    if (traits.shared) out.push_back(fixed(Mode::shared));
    if (traits.slots) out.push_back(fixed(Mode::slots, 2));
    return out;
  }

  /// Acquires it and lets it go, with the connection; its owner id.
  std::string let_go(Request wanted) {
    wanted.owner.id = util::random_id();
    const auto backend = service->connect();
    const auto lease = hold(*backend, wanted);
    return lease ? lease->owner_id() : "";
  }

  /// What inspect() shows of that holder, as a lease; null, and a test failure, if there is none.
  std::unique_ptr<Lease> pick_up(Backend& backend, const std::string& id, Millis ttl = kLong) {
    const LockInfo lock = inspect(backend, "job");
    const auto it = std::find_if(lock.holders.begin(), lock.holders.end(),
                                 [&](const auto& holder) { return holder.owner.id == id; });
    if (it == lock.holders.end()) {
      ADD_FAILURE() << "is not shown";
      return nullptr;
    }
    auto lease = backend.resume(lock, *it, ttl, soon());
    if (lease) return std::move(*lease);
    ADD_FAILURE() << lease.error().message;
    return nullptr;
  }
};

TEST_P(Resume, IsRefusedWhereALockEndsWithItsHolder) {
  if (can_be_let_go()) return;
  const auto lease = hold(*a, request("job"));
  const LockInfo lock = inspect(*b, "job");
  ASSERT_EQ(lock.holders.size(), 1u);
  EXPECT_EQ(code_of(b->resume(lock, lock.holders.front(), kLong, soon())), Errc::unsupported);
  EXPECT_TRUE(release(*lease));
}

TEST_P(Resume, WhatWasLetGoIsHeldAndShownAsIt) {
  if (!can_be_let_go()) return;
  for (const Request& wanted : of_each_mode()) {
    const std::string id = let_go(wanted);
    const LockInfo lock = inspect(*a, "job");
    ASSERT_EQ(lock.holders.size(), 1u);
    const LockInfo::Holder& holder = lock.holders.front();
    EXPECT_EQ(holder.owner.id, id);
    EXPECT_EQ(holder.owner.kind, Owner::Kind::acquire);
    EXPECT_EQ(holder.owner.lease, wanted.ttl);
    EXPECT_EQ(holder.owner.pid, 0);
    ASSERT_TRUE(holder.expires);
    EXPECT_GT(*holder.expires, Millis{30'000});
    EXPECT_LE(*holder.expires, wanted.ttl);
    EXPECT_FALSE(try_once(*b, request("job")));
    const auto lease = pick_up(*b, id);
    EXPECT_TRUE(lease && release(*lease));
  }
}

TEST_P(Resume, IsRenewedFromElsewhereByAnotherTtl) {
  if (!can_be_let_go()) return;
  for (const Request& wanted : of_each_mode()) {
    const std::string id = let_go(wanted);
    const auto lease = pick_up(*b, id);
    ASSERT_TRUE(lease);
    EXPECT_EQ(lease->owner_id(), id);
    EXPECT_TRUE(renew(*lease));
    EXPECT_GT(remaining(lease->valid_until()), Millis{300'000});
    const LockInfo lock = inspect(*a, "job");
    ASSERT_EQ(lock.holders.size(), 1u);
    const LockInfo::Holder& holder = lock.holders.front();
    EXPECT_EQ(holder.owner.id, id);
    EXPECT_EQ(holder.owner.kind, Owner::Kind::acquire);
    EXPECT_EQ(holder.owner.lease, wanted.ttl);  // what it was granted for
    EXPECT_EQ(holder.owner.command, wanted.owner.command);
    EXPECT_EQ(holder.fence, lease->fence());
    EXPECT_EQ(holder.slot, lease->slot());
    EXPECT_EQ(holder.slot.has_value(), wanted.mode == Mode::slots);
    ASSERT_TRUE(holder.expires);
    EXPECT_GT(*holder.expires, Millis{300'000});
    EXPECT_LE(*holder.expires, kLong);
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(is_free_for(*a, request("job")));
  }
}

// Once more after it was let go a second time; and to less than it had.
TEST_P(Resume, IsRenewedByOneProcessAfterTheOther) {
  if (!can_be_let_go()) return;
  const std::string id = let_go(fixed());
  for (const Millis ttl : {kLong, Millis{20'000}, Millis{200'000}}) {
    const auto backend = service->connect();
    const auto lease = pick_up(*backend, id, ttl);
    ASSERT_TRUE(lease);
    ASSERT_TRUE(renew(*lease));
    const LockInfo lock = inspect(*a, "job");
    ASSERT_EQ(lock.holders.size(), 1u);
    ASSERT_TRUE(lock.holders.front().expires);
    EXPECT_LE(*lock.holders.front().expires, ttl);
    EXPECT_GT(*lock.holders.front().expires, ttl / 2);
  }
  EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
  const auto lease = pick_up(*b, id);
  EXPECT_TRUE(lease && release(*lease));
}

TEST_P(Resume, ItsReleaseWakesAWaiter) {
  if (!can_be_let_go()) return;
  for (const Request& wanted : of_each_mode()) {
    const std::string first = let_go(wanted);
    const std::string second = wanted.mode == Mode::slots ? let_go(wanted) : "";
    Waiting waiting(service->connect(), wanted.mode == Mode::slots ? wanted : request("job"));
    ASSERT_TRUE(waiting.blocked());
    const auto lease = pick_up(*b, first);
    ASSERT_TRUE(lease && release(*lease));
    const auto next = waiting.lease();  // within kPatience, which is less than the ttl
    ASSERT_TRUE(next);
    EXPECT_TRUE(release(*next));
    if (second.empty()) continue;
    const auto other = pick_up(*b, second);
    EXPECT_TRUE(other && release(*other));
  }
}

// A waiter that sleeps until the lease would run out must not take what was renewed.
TEST_P(Resume, ARenewalKeepsAWaiterOut) {
  if (!can_be_let_go()) return;
  const std::string id = let_go(fixed(Mode::exclusive, 1, Millis{2'000}));
  Waiting waiting(service->connect(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  const auto lease = pick_up(*b, id);
  ASSERT_TRUE(lease && renew(*lease));
  EXPECT_FALSE(waiting.done(4'000));
  EXPECT_TRUE(release(*lease));
  const auto next = waiting.lease();
  EXPECT_TRUE(next && release(*next));
}

TEST_P(Resume, AWaiterGetsWhatNobodyRenews) {
  if (!can_be_let_go()) return;
  for (const Request& wanted : of_each_mode()) {
    if (wanted.mode == Mode::slots) continue;
    Request brief = wanted;
    brief.ttl = kBriefTtl;
    (void)let_go(brief);
    Waiting waiting(service->connect(), request("job"));
    const auto next = waiting.lease();
    EXPECT_TRUE(next && release(*next));
  }
}

TEST_P(Resume, WhatHasExpiredIsLostAndHurtsNobody) {
  if (!can_be_let_go()) return;
  const std::string id = let_go(fixed(Mode::exclusive, 1, kBriefTtl));
  const auto early = pick_up(*b, id);
  const auto late = pick_up(*b, id);
  ASSERT_TRUE(early && late);
  Waiting waiting(service->connect(), request("job"));
  const auto next = waiting.lease();
  ASSERT_TRUE(next);
  EXPECT_EQ(code_of(renew(*early)), Errc::lost);
  EXPECT_EQ(code_of(release(*late)), Errc::lost);
  EXPECT_TRUE(renew(*next));
  EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
  EXPECT_TRUE(release(*next));
}

TEST_P(Resume, WhatWasReleasedIsLost) {
  if (!can_be_let_go()) return;
  const std::string id = let_go(fixed());
  const auto one = pick_up(*a, id);
  const auto two = pick_up(*b, id);
  ASSERT_TRUE(one && two);
  EXPECT_TRUE(release(*one));
  EXPECT_EQ(code_of(renew(*two)), Errc::lost);
  EXPECT_TRUE(is_free_for(*a, request("job")));
}

// Several hold it, and each is given back by itself.
TEST_P(Resume, SeveralHoldersAreToldApart) {
  if (!can_be_let_go() || !traits.slots) return;
  const std::string one = let_go(fixed(Mode::slots, 2));
  const std::string two = let_go(fixed(Mode::slots, 2));
  const auto first = pick_up(*a, one);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->slot(), 1u);
  EXPECT_TRUE(release(*first));
  const auto second = pick_up(*b, two);
  ASSERT_TRUE(second && renew(*second));
  EXPECT_EQ(second->slot(), 2u);
  const auto third = hold(*a, slots("job", 2));
  ASSERT_TRUE(third);
  EXPECT_EQ(third->slot(), 1u);
  EXPECT_EQ(code_of(try_once(*b, slots("job", 2))), Errc::busy);
  EXPECT_TRUE(release(*third));
  EXPECT_TRUE(release(*second));
}

TEST_P(Resume, CanBeForceReleased) {
  if (!can_be_let_go()) return;
  const std::string id = let_go(fixed());
  const auto broken = b->force_release("job", id, {"root on ops (pid 1)"}, soon());
  EXPECT_TRUE(broken && broken.value());
  EXPECT_TRUE(is_free_for(*a, request("job")));
}

INSTANTIATE_TEST_SUITE_P(, Resume, testing::ValuesIn(service_kinds()),
                         [](const auto& its) { return its.param.name; });

}  // namespace
}  // namespace dlock::test
