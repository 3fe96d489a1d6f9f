// The protocol of src/backends/redis under a virtual clock, thousands of seeds;
// protocol_setting.hpp says what happens there, protocol_checks.cpp what must be true.
//
// A test that fails tells its seed.  To see what happened:
//   TEST_SIM_SEED=seed dlock-sim --gtest_filter=test

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "effort.hpp"
#include "protocol_setting.hpp"

namespace dlock::sim::protocol {

void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name; }

namespace {

/// A part of them is tried with each change; all of them in soak.
std::uint64_t seeds(std::uint64_t all) {
  return all / (is_soak() ? 1 : 200) / (kSanitized ? 5 : 1);
}

void add(Verdict& sum, const Verdict& one) {
  sum.requests += one.requests;
  sum.grants += one.grants;
  sum.waits += one.waits;
  sum.renewals += one.renewals;
  sum.losses += one.losses;
  sum.failed_rounds += one.failed_rounds;
  sum.front_rounds += one.front_rounds;
  sum.overtaken += one.overtaken;
  sum.taken += one.taken;
  sum.agains += one.agains;
  sum.breaks += one.breaks;
  sum.given_up += one.given_up;
  sum.launcher_kills += one.launcher_kills;
  sum.longest_free = std::max(sum.longest_free, one.longest_free);
  sum.longest_wait = std::max(sum.longest_wait, one.longest_wait);
}

/// All runs, up to the first that breaks a promise: then its seed.
struct Series {
  Verdict sum;
  std::uint64_t broken_by = 0;
  std::string how;
};

Series run(const Setting& setting, std::uint64_t count, Watch watch = {}) {
  Series out;
  std::uint64_t first = 1;
  std::uint64_t last = count;
  if (const std::uint64_t wanted = wanted_seed(); wanted != 0) {
    first = last = wanted;
    watch.trace = true;
  }
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const Verdict verdict = simulate(setting, seed, watch);
    add(out.sum, verdict);
    if (!verdict.broken) continue;
    out.broken_by = seed;
    out.how = "seed " + std::to_string(seed) + ": " + verdict.how;
    break;
  }
  return out;
}

template <class Row>
std::string row_name(const testing::TestParamInfo<Row>& row) {
  return row.param.name;
}

// ------------------------------------------------------------------------------ what must hold

class Protocol : public testing::TestWithParam<Setting> {};

TEST_P(Protocol, Holds) {
  const Setting& setting = GetParam();
  // Leases need clocks that do not drift too far.
  const Series series = run(setting, seeds(3'300), {.claims = setting.drift <= 0.01});
  EXPECT_EQ(series.broken_by, 0) << series.how;
  RecordProperty("longest_free_ms", std::to_string(series.sum.longest_free / Millis{1}));
  RecordProperty("longest_wait_ms", std::to_string(series.sum.longest_wait / Millis{1}));
  RecordProperty("requests_per_grant", std::to_string(series.sum.requests / series.sum.grants));
}

// Of one server: offers and the queue.  Of several: the votes, too.
INSTANTIATE_TEST_SUITE_P(
    OfOneServer, Protocol,
    testing::ValuesIn(std::vector<Setting>{
        {.name = "exclusive", .servers = 1, .breaks = true, .crashes = Crashes::keep_data},
        {.name = "shared",
         .servers = 1,
         .use = Use::shared_too,
         .breaks = true,
         .crashes = Crashes::keep_data},
        {.name = "slots",
         .servers = 1,
         .clients = 6,
         .use = Use::slots,
         .slots = 3,
         .breaks = true,
         .crashes = Crashes::keep_data},
        {.name = "all_modes", .servers = 1, .use = Use::all_modes, .breaks = true},
        {.name = "that_forgets",
         .servers = 1,
         .use = Use::all_modes,
         .crashes = Crashes::forget_for_a_ttl},
        {.name = "far_away", .servers = 1, .use = Use::shared_too, .far_away = true},
    }),
    row_name<Setting>);

INSTANTIATE_TEST_SUITE_P(
    OfThree, Protocol,
    testing::ValuesIn(std::vector<Setting>{
        {.name = "exclusive", .servers = 3, .breaks = true, .crashes = Crashes::keep_data},
        {.name = "exclusive_that_forget",
         .servers = 3,
         .clients = 6,
         .breaks = true,
         .crashes = Crashes::forget_for_a_ttl},
        {.name = "shared", .servers = 3, .use = Use::shared_too, .breaks = true},
        {.name = "slots",
         .servers = 3,
         .use = Use::slots,
         .breaks = true,
         .crashes = Crashes::keep_data},
        {.name = "slots_that_forget",
         .servers = 3,
         .clients = 6,
         .use = Use::slots,
         .slots = 3,
         .crashes = Crashes::forget_for_a_ttl},
        {.name = "all_modes",
         .servers = 3,
         .use = Use::all_modes,
         .breaks = true,
         .crashes = Crashes::forget_for_a_ttl},
        {.name = "far_away", .servers = 3, .far_away = true},
        {.name = "extreme_drift", .servers = 3, .extreme_drift = true, .breaks = true},
        // The end of the job keeps an allowance of its own, more than another percent.
        {.name = "drift_too_far", .servers = 3, .drift = 0.02, .extreme_drift = true},
        {.name = "one_dead", .servers = 3, .dead = 1, .use = Use::slots},
    }),
    row_name<Setting>);

INSTANTIATE_TEST_SUITE_P(
    OfMore, Protocol,
    testing::ValuesIn(std::vector<Setting>{
        {.name = "exclusive", .servers = 5, .breaks = true, .crashes = Crashes::keep_data},
        {.name = "exclusive_that_forget",
         .servers = 5,
         .clients = 6,
         .breaks = true,
         .crashes = Crashes::forget_for_a_ttl},
        {.name = "shared",
         .servers = 5,
         .use = Use::shared_too,
         .breaks = true,
         .crashes = Crashes::forget_for_a_ttl},
        {.name = "slots",
         .servers = 5,
         .clients = 6,
         .use = Use::slots,
         .slots = 3,
         .breaks = true,
         .crashes = Crashes::forget_for_a_ttl},
        {.name = "all_modes", .servers = 5, .use = Use::all_modes, .breaks = true},
        {.name = "of_two", .servers = 2, .use = Use::shared_too},
        {.name = "of_four", .servers = 4, .use = Use::all_modes},
        {.name = "that_forget_and_drift",
         .servers = 5,
         .extreme_drift = true,
         .far_away = true,
         .crashes = Crashes::forget_for_a_ttl},
        {.name = "two_dead", .servers = 5, .dead = 2, .use = Use::shared_too},
    }),
    row_name<Setting>);

// The network works; clients are stopped and killed.  A free lock goes to a living waiter, always.
INSTANTIATE_TEST_SUITE_P(
    Live, Protocol,
    testing::ValuesIn(std::vector<Setting>{
        {.name = "one_server",
         .servers = 1,
         .clients = 8,
         .reliable = true,
         .calm_from = Millis{110'000},
         .always_live = true},
        {.name = "one_server_slots",
         .servers = 1,
         .clients = 8,
         .use = Use::slots,
         .reliable = true,
         .calm_from = Millis{110'000},
         .always_live = true},
        {.name = "one_server_in_order",
         .servers = 1,
         .clients = 6,
         .reliable = true,
         .stopped = 0,
         .killed = 0,
         .free_at_most = Millis{100},
         .always_live = true},
        {.name = "one_server_one_is_killed",
         .servers = 1,
         .clients = 6,
         .reliable = true,
         .stopped = 0,
         .killed = 1,
         .free_at_most = Millis{1'200},  // killed while it is offered the lock
         .always_live = true},
        {.name = "one_server_one_is_stopped",
         .servers = 1,
         .clients = 6,
         .reliable = true,
         .stopped = 1,
         .killed = 0,
         .free_at_most = Millis{1'500},
         .always_live = true},
        {.name = "one_server_a_crowd_is_stopped",
         .servers = 1,
         .clients = 15,
         .reliable = true,
         .stopped = 0,
         .killed = 0,
         .crowd_stops = true,
         .always_live = true},
        {.name = "of_three",
         .servers = 3,
         .clients = 6,
         .reliable = true,
         .calm_from = Millis{110'000},
         .always_live = true},
        {.name = "of_five_shared",
         .servers = 5,
         .clients = 6,
         .use = Use::shared_too,
         .reliable = true,
         .calm_from = Millis{110'000},
         .always_live = true},
        {.name = "releases_lost_at_the_first",
         .servers = 3,
         .reliable = true,
         .stopped = 0,
         .killed = 0,
         .release_lost_at_first = 0.5,
         .ttl = Millis{15'000},
         .free_at_most = Millis{8'300},  // 5 s until it counts as dead, 3 s until the next asks
         .always_live = true},
        {.name = "one_client_reaches_only_the_first",
         .servers = 3,
         .reliable = true,
         .stopped = 0,
         .killed = 0,
         .one_reaches_only_first = true,
         .free_at_most = Millis{3'300},  // a rest after failed rounds: none is in a queue then
         .always_live = true},
    }),
    row_name<Setting>);

// Else all of the above says nothing.
TEST(ProtocolWorld, MakesTrouble) {
  if (wanted_seed() != 0) GTEST_SKIP();
  constexpr std::uint64_t kRuns = kSanitized ? 5 : 40;
  const Verdict sum = run({.servers = 3,
                           .clients = 6,
                           .use = Use::slots,
                           .breaks = true,
                           .crashes = Crashes::forget_for_a_ttl},
                          kRuns)
                          .sum;
  EXPECT_GT(sum.grants, 100 * kRuns);
  if (kSanitized) return;  // the rest is a matter of chance in so few runs
  EXPECT_GT(sum.waits, 10 * kRuns);
  EXPECT_GT(sum.renewals, 5 * kRuns);
  EXPECT_GT(sum.losses, kRuns);
  EXPECT_GT(sum.failed_rounds, 50 * kRuns);
  EXPECT_GT(sum.front_rounds, 5 * kRuns);
  EXPECT_GT(sum.overtaken, kRuns);
  EXPECT_GT(sum.taken, kRuns);
  EXPECT_GT(sum.agains, kRuns / 5);
  EXPECT_GT(sum.breaks, kRuns);
  EXPECT_GT(sum.given_up, kRuns / 5);
  EXPECT_GT(sum.launcher_kills, 0);
}

}  // namespace
}  // namespace dlock::sim::protocol
