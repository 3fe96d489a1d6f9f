// What `dlock once` remembers, for every backend.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client.hpp"
#include "fixtures.hpp"

namespace dlock::test {
namespace {

constexpr Millis kDay{24 * 3'600'000};

class Once : public testing::TestWithParam<ServiceKind> {
 protected:
  std::unique_ptr<Service> service = GetParam().start();
  const Traits& traits = service->traits();
  std::unique_ptr<Backend> a = service->connect();
  std::unique_ptr<Backend> b = service->connect();

  static Request once(const std::string& key = "job") {
    Request out = request(key);
    out.owner.kind = Owner::Kind::once;
    out.owner.label = "night";
    return out;
  }

  /// A lease under which a job may run that is remembered.
  static std::unique_ptr<Lease> begin(Backend& backend, const std::string& key = "job") {
    return test::begin(backend, once(key));
  }
  static Result<void> complete(Lease& lease, const std::string& period = "",
                               Millis remember = kDay) {
    return lease.complete({period, remember}, soon(), Cancel());
  }
  static void do_job(Backend& backend, const std::string& key = "job",
                     const std::string& period = "", Millis remember = kDay) {
    const auto lease = begin(backend, key);
    ASSERT_TRUE(lease);
    const auto done = complete(*lease, period, remember);
    EXPECT_TRUE(done) << done.error().message;
  }
  static std::vector<MarkName> names(Backend& backend, const std::string& prefix = "") {
    const auto found = backend.list_marks(prefix, soon());
    EXPECT_TRUE(found) << found.error().message;
    std::vector<MarkName> out;
    if (!found) return out;
    for (const Mark& mark : found.value()) out.push_back(mark.name);
    return out;
  }
  static bool forget(Backend& backend, const std::string& key = "job",
                     const std::string& period = "") {
    const auto gone = backend.forget_mark({key, period}, soon());
    EXPECT_TRUE(gone) << gone.error().message;
    return gone && gone.value();
  }
};

TEST_P(Once, NothingIsRememberedAtFirst) {
  EXPECT_FALSE(find(*a));
  EXPECT_TRUE(names(*a).empty());
  EXPECT_FALSE(forget(*a));
  const auto lease = begin(*a);
  ASSERT_TRUE(lease);
  EXPECT_FALSE(find(*a));
  EXPECT_TRUE(release(*lease));
  EXPECT_FALSE(find(*b));
}

TEST_P(Once, WhoHasDoneItIsRememberedAndTheLockIsFree) {
  const auto lease = begin(*a);
  ASSERT_TRUE(lease);
  const Owner owner = once().owner;
  ASSERT_TRUE(complete(*lease));
  EXPECT_TRUE(is_free_for(*b, request("job")));
  for (Backend* backend : {a.get(), b.get()}) {
    const auto mark = find(*backend);
    ASSERT_TRUE(mark);
    EXPECT_EQ(mark->name, (MarkName{"job", ""}));
    EXPECT_EQ(mark->owner.id, lease->owner_id());
    EXPECT_EQ(mark->owner.host, owner.host);
    EXPECT_EQ(mark->owner.pid, owner.pid);
    EXPECT_EQ(mark->owner.command, owner.command);
    EXPECT_EQ(mark->owner.kind, Owner::Kind::once);
    EXPECT_EQ(mark->owner.label, "night");
    EXPECT_EQ(mark->fence, lease->fence());
    EXPECT_EQ(mark->done_at.size(), 24u) << mark->done_at;
    EXPECT_GE(mark->age, Millis{0});
    EXPECT_LT(mark->age, kPatience);
    EXPECT_LE(mark->left, kDay);
    EXPECT_GT(mark->left, kDay - kPatience);
  }
}

TEST_P(Once, IsShownAmongMarksAndNotAmongLocks) {
  do_job(*a);
  EXPECT_EQ(names(*b), (std::vector<MarkName>{{"job", ""}}));
  const auto locks = b->list("", soon());
  ASSERT_TRUE(locks);
  EXPECT_TRUE(locks.value().empty());
  EXPECT_TRUE(inspect(*b, "job").holders.empty());
}

TEST_P(Once, EveryKeyAndPeriodIsRememberedForItself) {
  const std::vector<MarkName> all{{"a", ""},           {"a", "2026-11-22"}, {"a", "2026-W47"},
                                  {"a-2026", ""},      {"a/b", "2026-W47"}, {"a:done", ""},
                                  {"{a}", "2026-W47"}, {"ä%2F b", ""}};
  for (const MarkName& name : all) {
    EXPECT_FALSE(find(*b, name.key, name.period)) << name.key << ' ' << name.period;
    do_job(*a, name.key, name.period);
    EXPECT_TRUE(find(*b, name.key, name.period)) << name.key << ' ' << name.period;
  }
  EXPECT_EQ(names(*b), all);
  EXPECT_EQ(names(*b, "a/"), (std::vector<MarkName>{{"a/b", "2026-W47"}}));
  EXPECT_FALSE(find(*b, "A"));
  EXPECT_FALSE(find(*b, "a", "2026-11-2"));
  EXPECT_TRUE(forget(*b, "a", "2026-W47"));
  EXPECT_EQ(names(*b, "a").size(), 5u);
}

TEST_P(Once, TheLongestKeyCanBeDone) {
  const std::string key(255, '%');
  do_job(*a, key, std::string(kMaxPeriodLength, '9'));
  EXPECT_TRUE(find(*b, key, std::string(kMaxPeriodLength, '9')));
  EXPECT_EQ(names(*b).size(), 1u);
}

TEST_P(Once, IsForgottenWhenItsTimeIsOver) {
  do_job(*a, "job", "", Millis{1'500});
  do_job(*a, "other");
  EXPECT_TRUE(eventually([&] { return !find(*b); }));
  const std::vector<MarkName> left{{"other", ""}};  // find() takes off what the answer took
  EXPECT_TRUE(eventually([&] { return names(*b) == left; }));
  EXPECT_FALSE(forget(*b));
  do_job(*b);
  EXPECT_TRUE(find(*a));
}

TEST_P(Once, CanBeForgottenAndDoneAgain) {
  do_job(*a);
  const auto first = find(*a);
  EXPECT_TRUE(forget(*b));
  EXPECT_FALSE(find(*a));
  EXPECT_TRUE(names(*a).empty());
  EXPECT_FALSE(forget(*b));
  do_job(*b);
  const auto second = find(*a);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->owner.id, second->owner.id);
}

TEST_P(Once, AJobThatRunsIsRememberedAlthoughAnEarlierMarkIsForgotten) {
  do_job(*a);
  const auto lease = begin(*a);
  ASSERT_TRUE(lease);
  EXPECT_TRUE(forget(*b));
  EXPECT_TRUE(complete(*lease));
  const auto mark = find(*b);
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->owner.id, lease->owner_id());
}

TEST_P(Once, ALaterMarkReplacesAnEarlierOne) {
  do_job(*a, "job", "", Millis{1'500});
  do_job(*b);
  const auto mark = find(*a);
  ASSERT_TRUE(mark);
  EXPECT_GT(mark->left, Millis{60'000});
  EXPECT_EQ(names(*a).size(), 1u);
}

TEST_P(Once, AWaiterFindsTheMark) {
  const auto lease = begin(*a);
  ASSERT_TRUE(lease);
  Waiting waiting(service->connect(), once());
  ASSERT_TRUE(waiting.blocked());
  ASSERT_TRUE(complete(*lease));
  const auto next = waiting.lease();
  ASSERT_TRUE(next);
  const auto mark = find(*b);
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->owner.id, lease->owner_id());
  EXPECT_TRUE(release(*next));
  EXPECT_TRUE(find(*b));
}

// Nor harms the lock of the next one.
TEST_P(Once, WhoHasLostTheLockIsNotRemembered) {
  const auto lease = begin(*a);
  ASSERT_TRUE(lease);
  (void)lease->event_fd();
  ASSERT_TRUE(break_lock(service->connect(), *lease));
  EXPECT_EQ(code_of(complete(*lease)), Errc::lost);
  EXPECT_FALSE(find(*b));
  if (traits.ends_on == Traits::EndsOn::process_exit) return;
  (void)lease->release(soon(), Cancel());
  const auto next = hold(*b, once());
  ASSERT_TRUE(next);
  EXPECT_EQ(code_of(complete(*lease)), Errc::lost);
  EXPECT_FALSE(find(*b));
  EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
  EXPECT_TRUE(complete(*next));
}

TEST_P(Once, WhoseLeaseHasExpiredIsNotRemembered) {
  if (traits.ends_on != Traits::EndsOn::ttl) return;
  Request wanted = once();
  wanted.ttl = Millis{1'000};
  const auto lease = hold(*a, wanted);
  ASSERT_TRUE(lease);
  ASSERT_TRUE(a->prepare_marks("job", soon()));
  const auto next = begin(*b);
  ASSERT_TRUE(next);
  EXPECT_EQ(code_of(complete(*lease)), Errc::lost);
  EXPECT_FALSE(find(*a));
  EXPECT_TRUE(complete(*next));
  const auto mark = find(*a);
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->owner.id, next->owner_id());
}

// Before it has let go, and after that; and nobody who looks in between sees a mark that goes
// again.
TEST_P(Once, WhatIsDoneAtTheSameTimeIsDoneOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> runs = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto own = service->connect();
      if (!own || find(*own)) return;
      const auto lease = begin(*own);
      ASSERT_TRUE(lease);
      if (find(*own)) {
        EXPECT_TRUE(release(*lease));
        return;
      }
      ++runs;
      EXPECT_TRUE(complete(*lease));
      EXPECT_TRUE(find(*own));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(runs, 1);
}

// Where data outlive a server.
TEST_P(Once, OutlivesARestart) {
  const auto servers = service->servers();
  if (servers.empty() || GetParam().name.find("red") != std::string::npos) return;
  do_job(*a, "job", "2026-11-22");
  servers[0]->kill();
  servers[0]->start_again();
  const auto again = service->connect();
  EXPECT_TRUE(eventually([&] {
    const auto found = again->find_mark({"job", "2026-11-22"}, soon());
    return found && found.value();
  }));
}

// Redlock remembers nothing, and says so (numbers_test.cpp).
std::vector<ServiceKind> kinds_that_remember() {
  auto kinds = service_kinds();
  std::erase_if(kinds, [](const ServiceKind& kind) { return kind.name == "redlock"; });
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(, Once, testing::ValuesIn(kinds_that_remember()),
                         [](const auto& its) { return its.param.name; });

}  // namespace
}  // namespace dlock::test
