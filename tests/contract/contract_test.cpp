// The promises of core/backend.hpp, each once, for every backend.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <random>
#include <thread>

#include "client.hpp"
#include "fixtures.hpp"
#include "util/host.hpp"
#include "util/poll.hpp"

namespace dlock::test {
namespace {

class Contract : public testing::TestWithParam<ServiceKind> {
 protected:
  std::unique_ptr<Service> service = GetParam().start();
  const Traits& traits = service->traits();
  std::unique_ptr<Backend> a = connect();
  std::unique_ptr<Backend> b = connect();

  std::unique_ptr<Backend> connect() { return service->connect(); }
  bool expires() const {
    return traits.ends_on == Traits::EndsOn::ttl || traits.ends_on == Traits::EndsOn::session;
  }
};

// What a backend's Traits do not promise does not apply to it.  No skip: nothing is missing here.
#define NEEDS(trait)           \
  do {                         \
    if (!traits.trait) return; \
  } while (false)

// Not shorter: of redlock, a quarter of it must be enough for a server of this machine to answer.
constexpr Millis kShortTtl{1'000};

// --- exclusion

TEST_P(Contract, AnExclusiveLockKeepsOutEverybody) {
  auto lease = hold(*a, request("job"));
  EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
  if (traits.shared) {
    EXPECT_EQ(code_of(try_once(*b, shared("job"))), Errc::busy);
  }
  EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);  // also on the same connection
  EXPECT_TRUE(is_free_for(*b, request("Job")));
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(is_free_for(*b, request("job")));
}

TEST_P(Contract, SharedHoldersKeepOutExclusiveOnesOnly) {
  NEEDS(shared);
  auto one = hold(*a, shared("job"));
  auto two = hold(*b, shared("job"));
  EXPECT_EQ(inspect(*a, "job").holders.size(), 2u);
  EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
  EXPECT_TRUE(release(*one));
  EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
  EXPECT_TRUE(release(*two));
  EXPECT_TRUE(is_free_for(*a, request("job")));
}

TEST_P(Contract, SlotsAreAsManyAsAskedFor) {
  NEEDS(slots);
  auto one = hold(*a, slots("job", 2));
  auto two = hold(*b, slots("job", 2));
  EXPECT_EQ(code_of(try_once(*a, slots("job", 2))), Errc::busy);
  EXPECT_TRUE(release(*one));
  auto three = hold(*a, slots("job", 2));
  EXPECT_EQ(code_of(try_once(*b, slots("job", 2))), Errc::busy);
  EXPECT_TRUE(release(*two));
  EXPECT_TRUE(release(*three));
  EXPECT_TRUE(is_free_for(*a, slots("job", 5)));
  EXPECT_TRUE(is_free_for(*a, request("job")));
}

TEST_P(Contract, EachSlotHolderHasTheLowestNumberThatIsFree) {
  NEEDS(slots);
  auto one = hold(*a, slots("job", 3));
  auto two = hold(*b, slots("job", 3));
  auto three = hold(*a, slots("job", 3));
  EXPECT_EQ(one->slot(), 1u);
  EXPECT_EQ(two->slot(), 2u);
  EXPECT_EQ(three->slot(), 3u);
  EXPECT_TRUE(release(*two));
  EXPECT_TRUE(release(*one));
  auto four = hold(*b, slots("job", 3));
  EXPECT_EQ(four->slot(), 1u);
  auto five = hold(*b, slots("job", 3));
  EXPECT_EQ(five->slot(), 2u);
  const LockInfo info = inspect(*b, "job");
  EXPECT_EQ(info.holders.size(), 3u);
  for (const Lease* lease : {three.get(), four.get(), five.get()}) {
    EXPECT_EQ(std::count_if(info.holders.begin(), info.holders.end(),
                            [&](const LockInfo::Holder& holder) {
                              return holder.owner.id == lease->owner_id() &&
                                     holder.slot == lease->slot();
                            }),
              1);
  }
}

TEST_P(Contract, ARenewalKeepsTheNumberOfASlot) {
  NEEDS(slots);
  auto one = hold(*a, slots("job", 3));
  auto two = hold(*b, slots("job", 3));
  EXPECT_TRUE(release(*one));
  EXPECT_TRUE(renew(*two));
  EXPECT_EQ(two->slot(), 2u);
  const LockInfo info = inspect(*a, "job");
  ASSERT_EQ(info.holders.size(), 1u);
  EXPECT_EQ(info.holders.front().slot, 2u);
  one = hold(*a, slots("job", 3));
  EXPECT_EQ(one->slot(), 1u);
}

TEST_P(Contract, OnlySlotsHaveNumbers) {
  auto lease = hold(*a, request("job"));
  EXPECT_EQ(lease->slot(), std::nullopt);
  EXPECT_TRUE(release(*lease));
  NEEDS(shared);
  lease = hold(*a, shared("job"));
  EXPECT_EQ(lease->slot(), std::nullopt);
  EXPECT_EQ(inspect(*a, "job").holders.front().slot, std::nullopt);
}

TEST_P(Contract, AWaiterGetsTheNumberThatBecomesFree) {
  NEEDS(slots);
  auto one = hold(*a, slots("job", 2));
  auto two = hold(*b, slots("job", 2));
  Waiting waiter(connect(), slots("job", 2));
  ASSERT_TRUE(waiter.blocked());
  EXPECT_TRUE(release(*two));
  auto lease = waiter.lease();
  EXPECT_EQ(lease->slot(), 2u);
}

TEST_P(Contract, TheNumberOfAHolderThatHasDiedIsFree) {
  NEEDS(slots);
  if (!expires()) return;
  auto one = hold(*a, request("job", Mode::slots, 2, kShortTtl));
  one.reset();
  // Nobody renews these: they must outlast the one that has died.
  auto two = hold(*b, slots("job", 2));  // perhaps the other number
  auto three = hold(*b, slots("job", 2));
  EXPECT_NE(two->slot(), three->slot());
}

TEST_P(Contract, SlotsNeverHaveOneHolderTooManyNorOneNumberTwice) {
  NEEDS(slots);
  constexpr unsigned kSlots = 3;
  std::array<std::atomic<int>, kSlots + 1> holders{};  // of each number
  std::vector<std::thread> threads;
  for (int i = 0; i < 7; ++i) {
    threads.emplace_back([&, client = connect()] {
      for (int round = 0; round < 15; ++round) {
        auto lease = hold(*client, slots("job", kSlots));
        if (!lease) return;
        const unsigned slot = lease->slot().value_or(0);
        ASSERT_GE(slot, 1u);
        ASSERT_LE(slot, kSlots);
        EXPECT_EQ(++holders.at(slot), 1) << "holders of number " << slot;
        std::this_thread::yield();
        --holders.at(slot);
        EXPECT_TRUE(release(*lease));
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_P(Contract, ModesThatCannotBeMixedAreRefusedAtOnceNamingBoth) {
  NEEDS(slots);
  const auto refusal = [&](const Request& wanted) {
    auto lease = b->acquire(wanted, {.until = soon()});
    EXPECT_EQ(code_of(lease), Errc::conflict);
    return lease ? "" : lease.error().message;
  };
  auto lease = hold(*a, slots("job", 3));
  EXPECT_EQ(refusal(slots("job", 2)),
            "\"job\" is in use with --slots 3, and you asked for --slots 2; "
            "use --slots 3, or another key");
  EXPECT_NE(refusal(request("job")).find("--slots 3, and"), std::string::npos);
  if (traits.shared) {
    EXPECT_NE(refusal(shared("job")).find("--slots 3, and"), std::string::npos);
  }
  EXPECT_TRUE(release(*lease));
  lease = hold(*a, request("job"));
  EXPECT_NE(refusal(slots("job", 2)).find("asked for --slots 2"), std::string::npos);
  EXPECT_TRUE(release(*lease));
  if (!traits.shared) return;
  lease = hold(*a, shared("job"));
  EXPECT_NE(refusal(slots("job", 2)).find("asked for --slots 2"), std::string::npos);
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(is_free_for(*b, slots("job", 2)));
}

// --- waiting

TEST_P(Contract, WhoeverIsRefusedIsToldWhoHolds) {
  const Request held = request("job");
  auto lease = hold(*a, held);
  int calls = 0;
  LockInfo seen;
  const auto tell = [&](const LockInfo& info) {
    ++calls;
    seen = info;
  };
  EXPECT_EQ(code_of(b->acquire(request("job"), {Deadline{}, Cancel(), tell})), Errc::busy);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(seen.key, "job");
  ASSERT_EQ(seen.holders.size(), 1u);
  const LockInfo::Holder& holder = seen.holders[0];
  EXPECT_EQ(holder.owner.id, lease->owner_id());
  EXPECT_EQ(holder.owner.host, util::host_name());
  EXPECT_EQ(holder.owner.pid, getpid());
  EXPECT_EQ(holder.owner.user, util::user_name());
  EXPECT_EQ(holder.owner.command, "./contract test");
  EXPECT_FALSE(holder.foreign);
  ASSERT_TRUE(holder.held);
  EXPECT_GE(holder.held->count(), 0);
  EXPECT_LT(*holder.held, kPatience);
  EXPECT_EQ(holder.acquired_at.size(), std::string("2026-11-21T07:50:08.123Z").size());
}

TEST_P(Contract, AFreeLockTellsNobody) {
  const auto tell = [](const LockInfo&) { ADD_FAILURE() << "told"; };
  EXPECT_TRUE(a->acquire(request("job"), {Deadline{}, Cancel(), tell}).has_value());
}

TEST_P(Contract, AWaiterIsToldOfTheNextHolderToo) {
  if (traits.order == Traits::Order::none || !traits.knows_waiters) return;  // see NEEDS
  const auto waiters = [&](std::size_t count) {
    return eventually([&] { return inspect(*a, "job").waiters->size() == count; });
  };
  // A waiter may be listed before it is in the queue: then another can overtake it.
  std::atomic<bool> overtook = true;
  for (int tries = 0; overtook && tries < 5; ++tries) {
    overtook = false;
    auto lease = hold(*a, request("job"));
    std::vector<std::string> expected{lease->owner_id()};
    Waiting next(connect(), request("job"));
    ASSERT_TRUE(waiters(1));
    std::mutex mutex;
    std::vector<std::string> ids;
    const auto told = [&](std::size_t count) {
      return eventually([&] {
        const std::lock_guard lock(mutex);
        return overtook || ids.size() == count;
      });
    };
    CancelSource source;
    std::thread thread([&, client = connect()] {
      const auto tell = [&](const LockInfo& info) {
        const std::lock_guard lock(mutex);
        const std::string& id = info.holders.at(0).owner.id;
        if (ids.empty() || ids.back() != id) ids.push_back(id);  // its place may have changed
      };
      auto got = client->acquire(request("job"), {kNever, source.cancel(), tell});
      if (got) {
        overtook = true;
        EXPECT_TRUE(release(**got));
      } else {
        EXPECT_EQ(got.error().code, Errc::cancelled) << got.error().message;
      }
    });
    EXPECT_TRUE(waiters(2));
    EXPECT_TRUE(told(1));
    EXPECT_TRUE(release(*lease));
    lease = next.lease();
    expected.push_back(lease->owner_id());
    EXPECT_TRUE(told(2));
    source.fire();
    thread.join();
    EXPECT_TRUE(overtook || ids == expected);
    EXPECT_TRUE(release(*lease));
  }
  EXPECT_FALSE(overtook);
}

TEST_P(Contract, AReleaseWakesAWaiter) {
  auto lease = hold(*a, request("job"));
  Waiting waiting(connect(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  EXPECT_FALSE(waiting.done(20));
  const Deadline before = Clock::now();
  EXPECT_TRUE(release(*lease));
  auto next = waiting.lease();
  ASSERT_TRUE(next);
  EXPECT_LT(Clock::now() - before, here(Millis{2'000}));
  EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
}

TEST_P(Contract, ACommandThatHasEndedIsShownAndItsLockEndsWhenItShould) {
  std::vector<Request> all{request("job")};
  if (traits.shared) all.push_back(shared("job"));
  if (traits.slots) all.push_back(slots("job", 1));
  for (const Request& wanted : all) {
    auto lease = hold(*a, wanted);
    Waiting waiting(connect(), wanted.mode == Mode::slots ? slots("job", 1) : request("job"));
    ASSERT_TRUE(waiting.blocked());
    Deadline until;
    Result<void> told;
    ASSERT_TRUE(eventually([&] {  // Redlock: on a busy machine some may be late
      until = in(1'500);
      told = lease->end_command(until, soon(), Cancel());
      return told || told.error().code != Errc::unreachable;
    }));
    ASSERT_TRUE(told) << told.error().message;
    // Redlock: the servers of a minority may be slower.
    Owner owner;
    EXPECT_TRUE(eventually([&] {
      const LockInfo info = inspect(*b, "job");
      if (info.holders.size() == 1) owner = info.holders[0].owner;
      return owner.ended;
    }));
    EXPECT_EQ(owner.id, lease->owner_id());
    if (traits.ends_on == Traits::EndsOn::ttl) {
      EXPECT_EQ(owner.pid, 0);
      lease.reset();
    } else {
      EXPECT_TRUE(owner.pid == 0 || owner.pid == getpid()) << owner.pid;
      EXPECT_TRUE(renew(*lease));
      util::poll({}, until);
      EXPECT_TRUE(release(*lease));
    }
    auto next = waiting.lease();
    ASSERT_TRUE(next);
    EXPECT_GE(Clock::now(), until - Millis{50});
    EXPECT_LT(Clock::now(), until + kPatience / 2);  // the lease was for longer
    EXPECT_TRUE(release(*next));
  }
}

TEST_P(Contract, AnAbandonedLockIsFreeAtOnceOrAfterItsTtl) {
  auto lease = hold(*a, request("job", Mode::exclusive, 1, kShortTtl));
  const Deadline valid_until = lease->valid_until();
  Waiting waiting(connect(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  lease.reset();
  const auto next = waiting.lease();
  ASSERT_TRUE(next);
  if (expires()) {
    EXPECT_GE(Clock::now(), valid_until);
    EXPECT_LT(Clock::now(), valid_until + here(Millis{5'000}));
  }
}

TEST_P(Contract, AReleasedSlotWakesAWaiter) {
  NEEDS(slots);
  auto one = hold(*a, slots("job", 2));
  auto two = hold(*a, slots("job", 2));
  Waiting first(connect(), slots("job", 2));
  ASSERT_TRUE(first.blocked());
  Waiting second(connect(), slots("job", 2));
  ASSERT_TRUE(second.blocked());
  EXPECT_TRUE(release(*two));
  EXPECT_TRUE(eventually([&] { return first.done(0) || second.done(0); }));
  EXPECT_FALSE(first.done(20) && second.done(20));
  EXPECT_TRUE(release(*one));
  const auto third = first.lease();
  const auto fourth = second.lease();
  EXPECT_EQ(code_of(try_once(*b, slots("job", 2))), Errc::busy);
}

TEST_P(Contract, AWaiterThatIsCancelledLeavesNothingBehind) {
  auto lease = hold(*a, request("job"));
  auto cancelled = std::make_unique<Waiting>(connect(), request("job"));
  ASSERT_TRUE(cancelled->blocked());
  Waiting next(connect(), request("job"));
  ASSERT_TRUE(next.blocked());
  const Deadline before = Clock::now();
  cancelled->cancel();
  EXPECT_EQ(code_of(cancelled->result()), Errc::cancelled);
  EXPECT_LT(Clock::now() - before, here(Millis{2'000}));
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(release(*next.lease()));
  const LockInfo info = inspect(*a, "job");
  EXPECT_TRUE(info.holders.empty());
  if (traits.knows_waiters) {
    EXPECT_TRUE(info.waiters->empty());
  }
}

TEST_P(Contract, ASlotsWaiterThatIsCancelledLeavesNothingBehind) {
  NEEDS(slots);
  auto lease = hold(*a, slots("job", 1));
  Waiting cancelled(connect(), slots("job", 1));
  ASSERT_TRUE(cancelled.blocked());
  Waiting next(connect(), slots("job", 1));
  ASSERT_TRUE(next.blocked());
  cancelled.cancel();
  EXPECT_EQ(code_of(cancelled.result()), Errc::cancelled);
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(release(*next.lease()));
  EXPECT_TRUE(is_free_for(*a, request("job")));
}

TEST_P(Contract, AWaitEndsAtItsDeadline) {
  auto lease = hold(*a, request("job"));
  const Deadline until = in(60);
  EXPECT_EQ(code_of(b->acquire(request("job"), {.until = until})), Errc::busy);
  EXPECT_GE(Clock::now(), until);
  EXPECT_LT(Clock::now(), until + here(Millis{3'000}));
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(is_free_for(*b, request("job")));
}

// --- leases

TEST_P(Contract, ARenewalMovesValidUntil) {
  const Deadline before = Clock::now();
  auto lease = hold(*a, request("job"));
  const Deadline first = lease->valid_until();
  EXPECT_GT(first, before);
  if (expires()) {
    EXPECT_LT(first, Clock::now() + Millis{30'000});
  }
  EXPECT_TRUE(renew(*lease));
  if (traits.ends_on != Traits::EndsOn::process_exit) {
    EXPECT_GT(lease->valid_until(), first);
  } else {
    EXPECT_EQ(lease->valid_until(), kNever);
  }
  EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
}

TEST_P(Contract, AnExpiredLeaseIsLostAndNotTakenAgain) {
  if (!expires() || !service->has_one_clock()) return;  // see NEEDS
  auto lease = hold(*a, request("job", Mode::exclusive, 1, kShortTtl));
  ASSERT_TRUE(eventually([&] { return inspect(*b, "job").holders.empty(); }));
  EXPECT_EQ(renew(*lease).error().code, Errc::lost);
  EXPECT_TRUE(is_free_for(*b, request("job")));
  EXPECT_EQ(release(*lease).error().code, Errc::lost);
}

TEST_P(Contract, AReleaseAfterALossDoesNotHurtTheNextHolder) {
  auto lease = hold(*a, request("job"));
  Breaking breaking(connect(), lease->owner_id());
  if (traits.ends_on == Traits::EndsOn::process_exit) {
    ASSERT_TRUE(eventually([&] { return !renew(*lease); }));
    EXPECT_EQ(code_of(release(*lease)), Errc::lost);
  }
  ASSERT_TRUE(breaking.broken());
  auto next = hold(*b, request("job"));
  EXPECT_EQ(release(*lease).error().code, Errc::lost);
  EXPECT_TRUE(renew(*next));
  EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
  lease.reset();
  EXPECT_TRUE(renew(*next));
  EXPECT_TRUE(release(*next));
}

TEST_P(Contract, FencesGrowAlsoAfterTheServiceHasLostItsData) {
  NEEDS(fencing);
  std::uint64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    auto lease = hold(*a, request("job"));
    ASSERT_TRUE(lease && lease->fence());
    EXPECT_GT(*lease->fence(), last);
    last = *lease->fence();
    EXPECT_TRUE(release(*lease));
    if (!service->forget()) return;
    std::this_thread::sleep_for(Millis{2});  // nothing that is set up anew takes less
  }
}

TEST_P(Contract, FencesGrowWithEveryGrant) {
  NEEDS(fencing);
  std::uint64_t last = 0;
  const auto check = [&](const std::unique_ptr<Lease>& lease) {
    ASSERT_TRUE(lease && lease->fence());
    EXPECT_GT(*lease->fence(), last);
    last = *lease->fence();
  };
  for (int i = 0; i < 3; ++i) {
    const Millis ttl = i == 1 ? kShortTtl : Millis{30'000};
    auto lease = hold(*a, request("job", Mode::exclusive, 1, ttl));
    check(lease);
    if (i != 1) {  // 1: abandoned
      EXPECT_TRUE(release(*lease));
    }
  }
  if (traits.shared) {
    auto one = hold(*a, shared("job"));
    check(one);
    auto two = hold(*b, shared("job"));
    check(two);
    EXPECT_TRUE(release(*one));
    EXPECT_TRUE(release(*two));
  }
  if (traits.slots) {
    auto lease = hold(*a, slots("job", 2));
    check(lease);
    EXPECT_TRUE(release(*lease));
  }
  auto lease = hold(*a, request("job"));
  check(lease);
  EXPECT_TRUE(break_lock(connect(), *lease));
  check(hold(*b, request("job")));
}

// A process of its own that acquires, says so, and lives until it is killed.
class KilledHolder {
 public:
  KilledHolder(Service& service, const Request& wanted) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      auto backend = service.connect();
      auto lease = backend->acquire(wanted, {.until = soon()});
      const char byte = lease ? 1 : 0;
      [[maybe_unused]] const ssize_t wrote = ::write(ends[1], &byte, 1);
      for (;;) pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
    EXPECT_EQ(byte, 1);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void kill() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  ~KilledHolder() {
    if (pid_ != 0) kill();
  }
  KilledHolder(const KilledHolder&) = delete;
  KilledHolder& operator=(const KilledHolder&) = delete;

 private:
  pid_t pid_ = 0;
};

TEST_P(Contract, AKilledHolderIsNotShownAndItsLockIsFree) {
  std::uint64_t last = 0;
  for (const Request& wanted :
       {request("job", Mode::exclusive, 1, kShortTtl), request("job", Mode::shared, 1, kShortTtl),
        request("job", Mode::slots, 3, kShortTtl)}) {
    if ((wanted.mode == Mode::shared && !traits.shared) ||
        (wanted.mode == Mode::slots && !traits.slots)) {
      continue;
    }
    KilledHolder holder(*service, wanted);
    const LockInfo info = inspect(*a, "job");
    ASSERT_EQ(info.holders.size(), 1u);
    EXPECT_TRUE(info.holders[0].owner.id.starts_with(wanted.owner.id));
    EXPECT_EQ(info.mode, wanted.mode);
    EXPECT_EQ(info.slots, wanted.slots);
    Waiting waiting(connect(), wanted.mode == Mode::slots ? slots("other", 1) : request("job"));
    holder.kill();
    auto lease = waiting.lease();
    ASSERT_TRUE(lease);
    EXPECT_TRUE(release(*lease));
    if (!service->has_one_clock()) continue;
    ASSERT_TRUE(eventually([&] { return inspect(*a, "job").holders.empty(); }));
    EXPECT_TRUE(a->list("job", soon()).value().empty());
    // Of several servers the last ones may take a moment longer to forget it.
    lease.reset();
    ASSERT_TRUE(eventually([&] {
      auto got = try_once(*a, slots("job", 2));
      if (got) lease = std::move(*got);
      return lease != nullptr;
    }));
    if (traits.fencing) {
      EXPECT_GT(*lease->fence(), last);
      last = *lease->fence();
    }
    EXPECT_TRUE(release(*lease));
  }
}

TEST_P(Contract, ACopyOfItsDescriptorsKeepsTheLockAndReleaseFreesItAllTheSame) {
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 1)}) {
    auto lease = hold(*a, wanted);
    if (lease->lock_fds().empty()) {
      return;  // the lease outlives its process by itself
    }
    const auto refused = [&] {
      const auto outcome = try_once(*b, request("job"));
      return !outcome && outcome.error().code != Errc::unreachable;
    };
    std::vector<Fd> copies;
    const auto copy = [&] {
      for (const int fd : lease->lock_fds()) copies.emplace_back(dup(fd));
    };
    copy();
    lease.reset();
    EXPECT_TRUE(refused());
    if (wanted.mode != Mode::exclusive) {
      EXPECT_EQ(code_of(try_once(*b, slots("job", 3))), Errc::conflict);
    }
    EXPECT_EQ(inspect(*b, "job").holders.size(), 1u);
    copies.clear();
    const auto is_free = [&] { return is_free_for(*b, request("job")); };
    // A server hears of it a moment later.
    EXPECT_TRUE(traits.ends_on == Traits::EndsOn::process_exit ? is_free() : eventually(is_free));

    lease = hold(*a, wanted);
    copy();
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(is_free_for(*b, request("job")));
  }
}

// --- force-release

TEST_P(Contract, AForceReleaseReachesTheHolderWithItsReason) {
  std::vector<Request> all{request("job")};
  if (traits.shared) all.push_back(shared("job"));
  if (traits.slots) all.push_back(slots("job", 2));
  for (const Request& broken : all) {
    auto lease = hold(*a, broken);
    const int events = listen_to(*lease);
    if (events >= 0) {
      EXPECT_FALSE(util::wait_readable(events, Deadline{}) && lease->has_news());
    }
    Breaking breaking(connect(), lease->owner_id(), "disk is full; ask ops");
    const bool by_holder = traits.ends_on == Traits::EndsOn::process_exit;
    if (!by_holder) {
      EXPECT_TRUE(breaking.broken());
    }
    if (events >= 0) {
      EXPECT_TRUE(util::wait_readable(events, soon()));
    }
    const auto outcome = renew(*lease);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, Errc::lost);
    if (by_holder) {  // its command is not dead yet
      EXPECT_FALSE(try_once(*b, request("job")));
      EXPECT_EQ(code_of(release(*lease)), Errc::lost);
      EXPECT_TRUE(breaking.broken());
    }
    EXPECT_NE(outcome.error().message.find("disk is full; ask ops"), std::string::npos)
        << outcome.error().message;
    EXPECT_TRUE(is_free_for(*b, request("job", broken.mode, broken.slots)));
    EXPECT_TRUE(is_free_for(*b, request("job")));
    EXPECT_EQ(renew(*lease).error().code, Errc::lost);
    EXPECT_EQ(release(*lease).error().code, Errc::lost);
  }
}

TEST_P(Contract, WhatIsGivenBackFromElsewhereIsNoLoss) {
  auto lease = hold(*a, request("job"));
  listen_to(*lease);
  Breaking breaking(connect(), lease->owner_id(), "web on ci-2 (pid 7)", true);
  const bool by_holder = traits.ends_on == Traits::EndsOn::process_exit;
  if (!by_holder) {
    EXPECT_TRUE(breaking.broken());
  }
  const Deadline until = soon();
  auto outcome = renew(*lease);
  while (outcome && Clock::now() < until) outcome = renew(*lease);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::lost);
  EXPECT_TRUE(outcome.error().in_order);
  EXPECT_NE(outcome.error().message.find("\"job\" was given back by web on ci-2 (pid 7)"),
            std::string::npos)
      << outcome.error().message;
  (void)release(*lease);
  if (by_holder) {
    EXPECT_TRUE(breaking.broken());
  }
  EXPECT_TRUE(is_free_for(*b, request("job")));
}

TEST_P(Contract, AForceReleaseBreaksTheOneHolderThatWasShown) {
  NEEDS(shared);
  auto lease = hold(*a, shared("job"));
  auto other = hold(*b, shared("job"));
  auto forcing = std::async(std::launch::async, [client = connect(), id = lease->owner_id()] {
    return client->force_release("job", id, {"test"}, soon());
  });
  ASSERT_TRUE(eventually([&] { return !renew(*lease); }));
  EXPECT_EQ(release(*lease).error().code, Errc::lost);
  auto outcome = forcing.get();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(*outcome);
  EXPECT_TRUE(renew(*other));
  const LockInfo info = inspect(*b, "job");
  ASSERT_EQ(info.holders.size(), 1u);
  EXPECT_NE(info.holders[0].owner.id, lease->owner_id());
  EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
  EXPECT_TRUE(release(*other));
}

TEST_P(Contract, AForceReleaseOfWhatIsGoneIsFalse) {
  EXPECT_FALSE(*b->force_release("never used", "0123", {"test"}, soon()));
  const auto old = hold(*a, request("job"));
  EXPECT_TRUE(release(*old));
  EXPECT_FALSE(*b->force_release("job", old->owner_id(), {"test"}, soon()));
  auto lease = hold(*a, request("job"));
  EXPECT_FALSE(*b->force_release("job", old->owner_id(), {"test"}, soon()));
  EXPECT_FALSE(*b->force_release("job", "", {"test"}, soon()));
  EXPECT_TRUE(renew(*lease));
  EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
}

TEST_P(Contract, AForceReleaseLetsAWaiterIn) {
  auto lease = hold(*a, request("job"));
  Waiting waiting(connect(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  EXPECT_TRUE(break_lock(connect(), *lease));
  const Deadline before = Clock::now();
  auto next = waiting.lease();
  ASSERT_TRUE(next);
  EXPECT_LT(Clock::now() - before, here(Millis{1'000}));
  EXPECT_TRUE(renew(*next));
}

TEST_P(Contract, AForceReleasedSlotLetsAWaiterIn) {
  NEEDS(slots);
  auto lease = hold(*a, slots("job", 2));
  auto other = hold(*a, slots("job", 2));
  Waiting waiting(connect(), slots("job", 2));
  ASSERT_TRUE(waiting.blocked());
  EXPECT_TRUE(break_lock(connect(), *lease));
  auto next = waiting.lease();
  ASSERT_TRUE(next);
  EXPECT_TRUE(renew(*next));
  EXPECT_TRUE(renew(*other));
  EXPECT_FALSE(renew(*lease));
}

TEST_P(Contract, AForceReleaseNeverBreaksANewerGrant) {
  std::atomic<bool> stop = false;
  std::mutex mutex;
  std::string last;
  std::atomic<int> broken = 0;
  std::thread breaker([&, client = connect()] {
    while (!stop) {
      std::string id;
      {
        const std::lock_guard lock(mutex);
        id = last;
      }
      // By now that holder has released, or is just about to.
      const auto outcome = client->force_release("job", id, {"race"}, soon());
      if (outcome && outcome.value()) ++broken;
    }
  });
  std::uint64_t fence = 0;
  int lost = 0;
  for (int round = 0; round < 400; ++round) {
    const Request wanted = round % 3 == 2 && traits.shared ? shared("job") : request("job");
    auto lease = hold(*a, wanted);
    if (!lease) break;
    if (traits.fencing) {
      EXPECT_GT(*lease->fence(), fence);
      fence = *lease->fence();
    }
    // Its id is not known to the breaker yet: it must be whole.
    EXPECT_TRUE(renew(*lease)) << round;
    {
      const std::lock_guard lock(mutex);
      last = lease->owner_id();
    }
    if (!release(*lease)) ++lost;
  }
  stop = true;
  breaker.join();
  EXPECT_GE(broken, lost);
}

// --- looking

TEST_P(Contract, AFreeLockHasNoHolders) {
  const LockInfo info = inspect(*a, "job");
  EXPECT_EQ(info.key, "job");
  EXPECT_TRUE(info.holders.empty());
  if (traits.knows_waiters) {
    EXPECT_TRUE(info.waiters && info.waiters->empty());
  }
  EXPECT_TRUE(a->list("", soon()).value().empty());
  EXPECT_TRUE(release(*hold(*a, request("job"))));
  EXPECT_TRUE(inspect(*a, "job").holders.empty());
  EXPECT_TRUE(a->list("", soon()).value().empty());
}

TEST_P(Contract, AnyKeyIsItselfAndComesBackVerbatim) {
  std::string umlauts = "k";
  while (umlauts.size() < 255) umlauts += "\xC3\xA4";
  const std::vector<std::string> keys{"job",
                                      "Job",
                                      "JOB",
                                      "job 1",
                                      "job  1",
                                      " job",
                                      "job ",
                                      "\"q\"",
                                      "it's",
                                      "*?[x]",
                                      "50%",
                                      "%6a",
                                      "a/b",
                                      "a",
                                      "../x",
                                      "..",
                                      ".",
                                      ".h",
                                      "{a}b",
                                      "a~1",
                                      "a~",
                                      "a~gate",
                                      "';--",
                                      "\\",
                                      umlauts,
                                      umlauts.substr(0, 253) + "zz",
                                      std::string(200, 'a') + "..",
                                      std::string(200, 'a') + ".",
                                      std::string(200, 'a'),
                                      "e\xCC\x81",
                                      "\xC3\xA9",
                                      std::string(255, '%')};
  std::vector<std::unique_ptr<Lease>> leases;
  for (const std::string& key : keys) {
    auto lease = try_once(*a, request(key));
    ASSERT_TRUE(lease) << key << ": " << lease.error().message;
    leases.push_back(std::move(*lease));
  }
  for (const std::string& key : keys) {
    EXPECT_EQ(code_of(try_once(*b, request(key))), Errc::busy) << key;
    EXPECT_EQ(inspect(*b, key).holders.size(), 1u) << key;
  }
  auto sorted = keys;
  std::sort(sorted.begin(), sorted.end());
  const auto listed = [&](std::string_view prefix) {
    std::vector<std::string> out;
    const auto locks = b->list(prefix, soon());
    for (const LockInfo& info : locks.value()) out.push_back(info.key);
    return out;
  };
  EXPECT_EQ(listed(""), sorted);
  EXPECT_EQ(listed("job"), (std::vector<std::string>{"job", "job ", "job  1", "job 1"}));
  EXPECT_EQ(listed("*").size(), 1u);
  for (auto& lease : leases) EXPECT_TRUE(release(*lease));
}

TEST_P(Contract, ARecordComesBackVerbatim) {
  Request odd = request("job");
  odd.owner.command = "./x\x1b[31m\n\"q\" \xC3\xA4";
  odd.owner.label = "https://ci/\x07?a=1&b='2'";
  odd.owner.kind = Owner::Kind::acquire;
  odd.owner.lease = Millis{123'456};
  auto lease = hold(*a, odd);
  const LockInfo info = inspect(*b, "job");
  ASSERT_EQ(info.holders.size(), 1u);
  EXPECT_EQ(info.holders[0].owner.command, odd.owner.command);
  EXPECT_EQ(info.holders[0].owner.label, odd.owner.label);
  EXPECT_EQ(info.holders[0].owner.kind, odd.owner.kind);
  EXPECT_EQ(info.holders[0].owner.lease, odd.owner.lease);
  if (traits.fencing) {
    EXPECT_EQ(info.holders[0].fence, lease->fence());
  }
}

TEST_P(Contract, WaitersAreShown) {
  NEEDS(knows_waiters);
  auto lease = hold(*a, request("job"));
  Request wanted = request("job");
  wanted.owner.pid = 4'121'000;
  const auto count = [&](std::size_t most) {
    return eventually([&] { return inspect(*b, "job").waiters->size() == most; });
  };
  Waiting one(connect(), wanted);
  ASSERT_TRUE(one.blocked());
  ASSERT_TRUE(count(1));
  wanted.owner.id += "2";
  wanted.owner.pid = 4'121'001;
  if (traits.shared) wanted.mode = Mode::shared;
  Waiting two(connect(), wanted);
  ASSERT_TRUE(two.blocked());
  ASSERT_TRUE(count(2));
  std::vector<std::int64_t> pids;
  const LockInfo info = inspect(*b, "job");
  for (const auto& waiter : *info.waiters) {
    pids.push_back(waiter.owner.pid);
    EXPECT_EQ(waiter.owner.host, util::host_name());
    ASSERT_TRUE(waiter.waiting);
    EXPECT_LT(*waiter.waiting, kPatience);
  }
  if (traits.order != Traits::Order::fifo) std::sort(pids.begin(), pids.end());
  EXPECT_EQ(pids, (std::vector<std::int64_t>{4'121'000, 4'121'001}));
  one.cancel();
  (void)one.result();
  EXPECT_TRUE(count(1));
  EXPECT_EQ(inspect(*b, "job").waiters->at(0).mode, wanted.mode);
}

// --- everything at once

TEST_P(Contract, ARandomScheduleNeverOverlaps) {
  constexpr int kKeys = 3;
  struct State {
    std::mutex mutex;
    int exclusive = 0;
    int shared = 0;
    int slots = 0;
    std::uint64_t begun_after = 0;  // the largest fence of a grant that is known to be over
  };
  std::array<State, kKeys> states;
  const auto seed = static_cast<unsigned>(Clock::now().time_since_epoch().count());
  SCOPED_TRACE(seed);
  const auto run = [&](unsigned number, Backend& client) {
    std::mt19937 random(seed + number);
    for (int round = 0; round < 40; ++round) {
      const auto which = random() % kKeys;
      State& state = states[which];
      const std::string key = "key " + std::to_string(which);
      std::uint64_t floor = 0;
      {
        const std::lock_guard lock(state.mutex);
        floor = state.begun_after;
      }
      const auto kind = random() % 3;
      const Request wanted = kind == 1 && traits.shared  ? shared(key)
                             : kind == 2 && traits.slots ? slots(key, 2)
                                                         : request(key);
      auto lease = client.acquire(wanted, {.until = in(static_cast<int>(random() % 30))});
      if (!lease) {
        EXPECT_TRUE(lease.error().code == Errc::busy || lease.error().code == Errc::conflict)
            << lease.error().message;
        continue;
      }
      int& mine = wanted.mode == Mode::shared  ? state.shared
                  : wanted.mode == Mode::slots ? state.slots
                                               : state.exclusive;
      {
        const std::lock_guard lock(state.mutex);
        ++mine;
        EXPECT_TRUE((state.exclusive == 1) + (state.shared > 0) + (state.slots > 0) == 1)
            << state.exclusive << " exclusive, " << state.shared << " shared, " << state.slots
            << " slots, just granted: " << mode_name(wanted.mode) << " fence "
            << (*lease)->fence().value_or(0);
        EXPECT_LE(state.exclusive, 1);
        EXPECT_LE(state.slots, 2);
        if (traits.fencing) {
          EXPECT_GT((*lease)->fence().value_or(0), floor);
        }
      }
      if (random() % 2 == 0) std::this_thread::yield();
      if (random() % 8 == 0) {
        EXPECT_TRUE(renew(**lease));
      }
      {
        const std::lock_guard lock(state.mutex);
        --mine;
        state.begun_after = std::max(state.begun_after, (*lease)->fence().value_or(0));
      }
      const bool abandon = !expires() && random() % 4 == 0;
      if (!abandon) {
        EXPECT_TRUE(release(**lease));
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 5; ++number) {
    threads.emplace_back([&, number, client = connect()] { run(number, *client); });
  }
  for (auto& thread : threads) thread.join();
  for (int which = 0; which < kKeys; ++which) {
    const Request wanted = request("key " + std::to_string(which));
    EXPECT_TRUE(eventually([&] { return is_free_for(*a, wanted); }));
  }
}

INSTANTIATE_TEST_SUITE_P(, Contract, testing::ValuesIn(service_kinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace dlock::test
