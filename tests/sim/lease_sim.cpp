// The keeper's schedule under a virtual clock: one lease on one server, thousands of seeds.
//
// World.  True time runs in nanoseconds.  The client's clock and the server's run up to 1 % fast or
//   slow.  Messages are lost, or take from 0.1 ms to longer than the lease; the server falls silent
//   for a while; the supervisor is stopped for a while, the launcher is not.
// Client. What the engine does with a LeaseSchedule, in the same order: supervisor (SIGTERM at
//   give_up_at, SIGKILL at kill_at), keeper (attempts, timeouts, late answers), launcher (SIGKILL
//   at launcher_kills_at).
// Checked. The job is dead before the server would give the lock to somebody else (safety); it
//   survives whatever is shorter than the margin (liveness); attempts are few (no polling).
// Mutants. Each must be caught, or the checks are worth nothing.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "engine/lease_schedule.hpp"
#include "local_clock.hpp"

namespace dlock {
namespace {

using sim::LocalClock;
using sim::Nanos;

enum class Mutant {
  none,
  counts_from_the_answer,
  no_drift_margin,
  accepts_late_answer,
  ends_at_the_last_moment,
  no_front,
  job_not_killed,
};

struct Setting {
  Millis ttl{10'000};
  Mutant mutant = Mutant::none;
  bool faults = true;
  std::optional<Millis> one_outage;  // instead of random faults: one silence of this length
};

struct Verdict {
  bool overlap = false;  // the job was alive when the server's lease had run out
  bool lost = false;
  int attempts = 0;
  Nanos lasted{0};
};

class World {
 public:
  World(std::uint64_t seed, const Setting& setting) : random_(seed), setting_(setting) {
    client_.rate = 1 + real(-0.01, 0.01);
    server_.rate = 1 + real(-0.01, 0.01);
    if (setting.one_outage) {
      silence_begins_ = Nanos(Millis{30'000}) + millis(0, 10'000);
      silence_ends_ = silence_begins_ + *setting.one_outage;
    } else if (setting.faults) {
      silence_begins_ = millis(0, 100'000);
      silence_ends_ = silence_begins_ + millis(0, 2 * static_cast<double>(setting.ttl.count()));
      if (chance(0.5)) {
        stop_begins_ = millis(0, 100'000);
        stop_ends_ = stop_begins_ + millis(0, 2 * static_cast<double>(setting.ttl.count()));
      }
    }
  }

  Verdict run();

 private:
  struct Answer {
    bool applied = false;
    std::optional<Nanos> arrives;
  };

  double real(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  bool chance(double p) { return setting_.faults && real(0, 1) < p; }
  Nanos millis(double low, double high) {
    return Nanos(static_cast<Nanos::rep>(real(low, high) * 1e6));
  }
  Nanos delay() {
    if (!setting_.faults) return millis(0.1, 3);
    const double p = real(0, 1);
    if (p < 0.90) return millis(0.1, 3);
    if (p < 0.98) return millis(3, 300);
    return millis(300, 1.2 * static_cast<double>(setting_.ttl.count()));
  }
  // When a process that is due at `when` gets to run.
  Nanos scheduled(Nanos when) {
    const Nanos late = when + millis(0, 5);
    return late >= stop_begins_ && late < stop_ends_ ? stop_ends_ : late;
  }
  bool silent(Nanos when) const { return when >= silence_begins_ && when < silence_ends_; }

  // A renewal that is sent at `sent`: what the server does with it, and when the answer is here.
  Answer renew(Nanos sent) {
    Answer out;
    if (chance(0.02)) return out;
    Nanos arrives = sent + delay();
    if (silent(arrives)) {  // stopped: it answers what lies in its sockets when it goes on
      if (!setting_.one_outage && chance(0.3)) return out;
      arrives = silence_ends_;
    }
    const Deadline there = server_.at(arrives);
    if (there >= server_expiry_) return out;  // gone: it is not created again
    server_expiry_ = there + setting_.ttl;
    out.applied = true;
    if (!chance(0.02)) out.arrives = arrives + delay();
    return out;
  }

  Deadline trusted_until(Deadline asked, Deadline answered) const {
    const Millis margin = setting_.ttl / 50 + Millis{2};
    if (setting_.mutant == Mutant::counts_from_the_answer) return answered + setting_.ttl - margin;
    if (setting_.mutant == Mutant::no_drift_margin) return asked + setting_.ttl;
    return asked + setting_.ttl - margin;
  }

  std::mt19937_64 random_;
  const Setting setting_;
  LocalClock client_;
  LocalClock server_;
  Nanos silence_begins_ = Nanos::max();
  Nanos silence_ends_ = Nanos::max();
  Nanos stop_begins_ = Nanos::max();
  Nanos stop_ends_ = Nanos::max();
  Deadline server_expiry_{};
};

Verdict World::run() {
  Verdict verdict;
  Nanos now = Nanos(Millis{1'000});
  server_expiry_ = server_.at(now + millis(0.1, 3)) + setting_.ttl;
  const Millis kill_after = std::min(Millis{5'000}, setting_.ttl / 4);
  const Margins margins{kill_after};
  const Deadline asked_at = client_.at(now);
  now += millis(0.2, 6);
  LeaseSchedule schedule(trusted_until(asked_at, client_.at(now)), setting_.ttl, margins,
                         random_());

  // The job takes its whole time over SIGTERM.  When it is dead, in true time:
  const auto dead_at = [&](Deadline valid_until) {
    if (setting_.mutant == Mutant::ends_at_the_last_moment) {
      return client_.true_time(valid_until) + Nanos(kill_after);  // the SIGTERM goes out then
    }
    const Nanos by_supervisor = scheduled(client_.true_time(margins.kill_at(valid_until)));
    if (setting_.mutant == Mutant::job_not_killed) return by_supervisor + Nanos(Millis{60'000});
    const Nanos by_front = client_.true_time(margins.launcher_kills_at(valid_until)) + millis(0, 5);
    if (setting_.mutant == Mutant::no_front) return by_supervisor;
    return std::min(by_supervisor, by_front) + millis(0, 5);
  };
  const Nanos end = Nanos(Millis{120'000});

  const auto lose = [&] {
    const Nanos dead = dead_at(schedule.valid_until());
    verdict.lost = true;
    verdict.lasted = now;
    verdict.overlap = server_.at(dead) >= server_expiry_;
    return verdict;
  };
  while (now < end) {
    const Nanos gives_up = client_.true_time(schedule.give_up_at());
    const Nanos due = scheduled(std::max(now, client_.true_time(schedule.next_attempt())));
    if (due >= gives_up) return lose();
    now = due;
    ++verdict.attempts;
    const Deadline asked = client_.at(now);
    const Nanos times_out = std::max(now, client_.true_time(schedule.attempt_until(asked)));
    const Answer answer = renew(now);
    const bool answered = answer.arrives && *answer.arrives <= times_out;
    now = scheduled(answered ? *answer.arrives : times_out);
    if (!answered) {
      if (setting_.mutant == Mutant::accepts_late_answer && answer.arrives) {
        // Takes the answer whenever it comes, as if nothing had happened, and kills nobody.
        const Nanos came = scheduled(*answer.arrives);
        if (server_.at(client_.true_time(schedule.valid_until())) >= server_expiry_ ||
            client_.at(came) >= schedule.valid_until()) {
          verdict.overlap |=
              client_.at(came) >= schedule.valid_until() && server_.at(came) >= server_expiry_;
        }
        now = came;
        schedule =
            LeaseSchedule(trusted_until(asked, client_.at(came)), setting_.ttl, margins, random_());
        if (verdict.overlap) return verdict;
        continue;
      }
      schedule.failed(client_.at(now));
      continue;
    }
    if (!schedule.renewed(asked, client_.at(now), trusted_until(asked, client_.at(now)))) {
      return lose();
    }
  }
  verdict.lasted = now;
  return verdict;
}

int overlaps(const Setting& setting, std::uint64_t seeds, std::uint64_t* first = nullptr) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    if (World(seed, setting).run().overlap && ++found == 1 && first != nullptr) *first = seed;
  }
  return found;
}

constexpr std::uint64_t kSeeds = 20'000;

TEST(Lease, TheJobIsDeadBeforeTheServerWouldGiveTheLockAway) {
  for (const Millis ttl : {Millis{1'000}, Millis{3'000}, Millis{10'000}, Millis{30'000}}) {
    std::uint64_t seed = 0;
    EXPECT_EQ(overlaps({.ttl = ttl}, kSeeds, &seed), 0)
        << "ttl " << ttl.count() << " ms, first at seed " << seed;
  }
}

TEST(Lease, WithoutFaultsItIsNeverLostAndSeldomRenewed) {
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    const Setting setting{.faults = false};
    const Verdict verdict = World(seed, setting).run();
    ASSERT_FALSE(verdict.lost) << "seed " << seed;
    // A third of 10 s, for two minutes.
    ASSERT_LE(verdict.attempts, 40) << "seed " << seed;
    ASSERT_GE(verdict.attempts, 30) << "seed " << seed;
  }
}

TEST(Lease, SurvivesASilenceThatIsShorterThanTheMargin) {
  // 10 s less a third until the first attempt, less kill_after, less what the retries leave.
  const Setting setting{.faults = false, .one_outage = Millis{3'000}};
  for (std::uint64_t seed = 1; seed <= 5'000; ++seed) {
    ASSERT_FALSE(World(seed, setting).run().lost) << "seed " << seed;
  }
}

TEST(Lease, DoesNotSurviveASilenceThatIsLongerThanTheLease) {
  const Setting setting{.faults = false, .one_outage = Millis{11'000}};
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    const Verdict verdict = World(seed, setting).run();
    ASSERT_TRUE(verdict.lost) << "seed " << seed;
    ASSERT_LE(verdict.attempts, 80) << "seed " << seed << ": retries are not a busy loop";
  }
}

TEST(Lease, EveryMutantIsCaught) {
  for (const Mutant mutant :
       {Mutant::counts_from_the_answer, Mutant::no_drift_margin, Mutant::accepts_late_answer,
        Mutant::ends_at_the_last_moment, Mutant::no_front, Mutant::job_not_killed}) {
    // The shortest lease has the smallest margins, so mistakes show there first.
    const Setting setting{.ttl = Millis{30'000}, .mutant = mutant};
    const Setting shorter{.ttl = Millis{1'000}, .mutant = mutant};
    const int found = overlaps(setting, kSeeds) + overlaps(shorter, kSeeds);
    EXPECT_GT(found, 0) << "mutant " << static_cast<int>(mutant) << " was not caught";
    RecordProperty("mutant_" + std::to_string(static_cast<int>(mutant)), found);
  }
}

}  // namespace
}  // namespace dlock
