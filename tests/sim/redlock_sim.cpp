// The Redlock of src/backends/redis under a virtual clock, thousands of seeds; redlock_world.cpp
// says what happens there and what is checked.
//
// A test that fails tells its seed.  To see what happened:
//   TEST_SIM_SEED=seed dlock-sim --gtest_filter=test

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "effort.hpp"
#include "redlock_world.hpp"

namespace dlock::sim {

void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name; }

namespace {

/// A part of them is tried with each change; all of them in soak.
std::uint64_t seeds(std::uint64_t all) { return all / (is_soak() ? 1 : 60) / (kSanitized ? 5 : 1); }

void add(Verdict& sum, const Verdict& one) {
  sum.requests += one.requests;
  sum.grants += one.grants;
  sum.renewals += one.renewals;
  sum.losses += one.losses;
  sum.stuck += one.stuck;
  sum.overtaken += one.overtaken;
  sum.taken += one.taken;
  sum.doubts += one.doubts;
  sum.agains += one.agains;
  sum.front_kills += one.front_kills;
  sum.longest_wait = std::max(sum.longest_wait, one.longest_wait);
}

/// All runs, up to the first that breaks a promise: then its seed.
struct Series {
  Verdict sum;
  std::uint64_t broken_by = 0;
  std::string how;
};

Series run(const Setting& setting, std::uint64_t count, Watch watch) {
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

class Redlock : public testing::TestWithParam<Setting> {};

TEST_P(Redlock, NothingOverlaps) {
  const Setting& setting = GetParam();
  Watch watch;
  // Leases need clocks that do not drift too far.
  watch.claims = setting.drift <= 0.01;
  const Series series = run(setting, seeds(2'000), watch);
  EXPECT_EQ(series.broken_by, 0) << series.how;
}

INSTANTIATE_TEST_SUITE_P(
    , Redlock,
    testing::ValuesIn(std::vector<Setting>{
        {.name = "one_server", .nodes = 1},
        {.name = "of_3", .nodes = 3},
        {.name = "of_5", .nodes = 5},
        {.name = "of_3_shared", .nodes = 3, .use = Use::shared_too},
        {.name = "of_5_shared", .nodes = 5, .use = Use::shared_too},
        {.name = "of_3_slots", .nodes = 3, .use = Use::slots},
        {.name = "of_5_slots", .nodes = 5, .use = Use::slots},
        {.name = "of_3_slots_and_many_heads",
         .nodes = 3,
         .clients = 6,
         .use = Use::slots,
         .slots = 3,
         .many_heads = true},
        {.name = "of_5_slots_and_many_heads",
         .nodes = 5,
         .clients = 6,
         .use = Use::slots,
         .slots = 3,
         .many_heads = true},
        {.name = "of_3_all_modes", .nodes = 3, .use = Use::all_modes},
        {.name = "of_5_all_modes", .nodes = 5, .use = Use::all_modes},
        {.name = "of_4_all_modes", .nodes = 4, .clients = 5, .use = Use::all_modes},
        {.name = "of_3_far_away", .nodes = 3, .far_away = true},
        {.name = "of_5_far_away", .nodes = 5, .far_away = true},
        {.name = "of_3_that_drift", .nodes = 3, .extreme_drift = true},
        {.name = "of_5_that_drift", .nodes = 5, .extreme_drift = true},
        // The end of the job keeps a margin of its own, more than another percent.
        {.name = "of_3_that_drift_too_far", .nodes = 3, .drift = 0.02, .extreme_drift = true},
        {.name = "of_5_that_drift_too_far", .nodes = 5, .drift = 0.02, .extreme_drift = true},
        {.name = "of_3_that_restart",
         .nodes = 3,
         .use = Use::all_modes,
         .crashes = Crashes::keep_data},
        {.name = "of_5_that_restart",
         .nodes = 5,
         .use = Use::all_modes,
         .crashes = Crashes::keep_data},
        {.name = "of_3_that_forget", .nodes = 3, .crashes = Crashes::forget_for_a_ttl},
        {.name = "of_5_that_forget", .nodes = 5, .crashes = Crashes::forget_for_a_ttl},
        {.name = "of_3_slots_that_forget",
         .nodes = 3,
         .use = Use::slots,
         .crashes = Crashes::forget_for_a_ttl},
        {.name = "of_5_slots_that_forget",
         .nodes = 5,
         .clients = 6,
         .use = Use::slots,
         .slots = 3,
         .many_heads = true,
         .crashes = Crashes::forget_for_a_ttl},
        {.name = "of_5_all_modes_that_forget",
         .nodes = 5,
         .use = Use::all_modes,
         .crashes = Crashes::forget_for_a_ttl},
        {.name = "of_5_that_forget_and_drift",
         .nodes = 5,
         .extreme_drift = true,
         .far_away = true,
         .crashes = Crashes::forget_for_a_ttl},
    }),
    row_name<Setting>);

class RedlockCalm : public testing::TestWithParam<Setting> {};

// Four that come at once, with jobs of up to a second: each is in within 10 s.  That leaves a
// second and a half for each hand-over, which is how long a client may sleep between two attempts.
TEST_P(RedlockCalm, EverybodyGetsIn) {
  Setting setting = GetParam();
  setting.calm_from = Millis{0};
  setting.length = Millis{10'000};
  const Series series = run(setting, seeds(2'000), {});
  EXPECT_EQ(series.broken_by, 0) << series.how;
  EXPECT_EQ(series.sum.losses, 0);
  RecordProperty("longest_wait_ms", std::to_string(series.sum.longest_wait / Millis{1}));
  RecordProperty("requests_per_grant", std::to_string(series.sum.requests / series.sum.grants));
  if (setting.dead == 0) {
    EXPECT_EQ(series.sum.stuck, 0);
  }
}

// When faults end, grants that nobody knows of are still there, and messages on their way: 50 s are
// a job of 30 s, and what remains for the others.
TEST_P(RedlockCalm, EverybodyGetsInOnceTheFaultsEnd) {
  Setting setting = GetParam();
  setting.calm_from = Millis{60'000};
  setting.length = Millis{110'000};
  const Series series = run(setting, seeds(1'000), {});
  EXPECT_EQ(series.broken_by, 0) << series.how;
}

INSTANTIATE_TEST_SUITE_P(
    , RedlockCalm,
    testing::ValuesIn(std::vector<Setting>{
        {.name = "one_server", .nodes = 1, .crashes = Crashes::keep_data},
        {.name = "of_3", .nodes = 3, .crashes = Crashes::keep_data},
        {.name = "of_5", .nodes = 5, .crashes = Crashes::forget_for_a_ttl},
        {.name = "of_3_one_dead", .nodes = 3, .dead = 1},
        {.name = "of_5_two_dead", .nodes = 5, .dead = 2, .use = Use::shared_too},
        {.name = "of_5_shared", .nodes = 5, .use = Use::shared_too},
        {.name = "of_5_slots", .nodes = 5, .use = Use::slots},
        {.name = "of_3_slots_one_dead", .nodes = 3, .dead = 1, .use = Use::slots},
        {.name = "of_3_with_3_slots", .nodes = 3, .clients = 6, .use = Use::slots, .slots = 3},
        {.name = "of_5_with_3_slots", .nodes = 5, .clients = 6, .use = Use::slots, .slots = 3},
        {.name = "of_3_with_3_slots_and_many_heads",
         .nodes = 3,
         .clients = 6,
         .use = Use::slots,
         .slots = 3,
         .many_heads = true},
        {.name = "of_5_with_3_slots_and_many_heads",
         .nodes = 5,
         .clients = 6,
         .use = Use::slots,
         .slots = 3,
         .many_heads = true},
        {.name = "of_5_all_modes", .nodes = 5, .use = Use::all_modes, .far_away = true},
    }),
    row_name<Setting>);

// Else all of the above says nothing.
TEST(RedlockWorld, MakesTrouble) {
  if (wanted_seed() != 0) GTEST_SKIP();
  constexpr std::uint64_t kRuns = kSanitized ? 5 : 30;
  Verdict sum = run({.nodes = 5}, kRuns, {}).sum;
  add(sum, run({.nodes = 3, .use = Use::all_modes}, kRuns, {}).sum);
  EXPECT_GT(sum.grants, 10 * kRuns);
  EXPECT_GT(sum.renewals, 10 * kRuns);
  EXPECT_GT(sum.stuck, 50 * kRuns);
  EXPECT_GT(sum.doubts, 50 * kRuns);
  EXPECT_GT(sum.losses, kRuns / 2);
  EXPECT_GT(sum.front_kills, kRuns / 10);
  EXPECT_GT(sum.overtaken, kRuns / 10);
  sum =
      run({.nodes = 3, .clients = 6, .use = Use::slots, .slots = 3, .many_heads = true}, kRuns, {})
          .sum;
  EXPECT_GT(sum.taken, kRuns);
  sum = run({.crashes = Crashes::forget_for_a_ttl}, kRuns, {}).sum;
  EXPECT_GT(sum.agains, kRuns);
}

// -------------------------------------------------------------------------- what must be found

struct Flaw {
  const char* name;
  Broken breaks;
  Setting setting;
  bool is_rare = false;  // it takes thousands of seeds to find it
};

void PrintTo(const Flaw& flaw, std::ostream* out) { *out << flaw.name; }

class RedlockFlaw : public testing::TestWithParam<Flaw> {};

TEST_P(RedlockFlaw, IsFound) {
  if (GetParam().is_rare && !is_soak()) return;
  constexpr std::uint64_t kMost = 20'000;
  const Series series =
      run(GetParam().setting, kSanitized ? 10 : kMost, {.only = GetParam().breaks});
  RecordProperty("first_seed", std::to_string(series.broken_by));
  if (kSanitized) return;
  EXPECT_NE(series.broken_by, 0) << "not found: " << name_of(GetParam().breaks);
}

Setting with(Mutant mutant, Setting setting = {}) {
  setting.mutant = mutant;
  return setting;
}

INSTANTIATE_TEST_SUITE_P(
    , RedlockFlaw,
    testing::ValuesIn(std::vector<Flaw>{
        {"deadline_from_the_answer", Broken::claims,
         with(Mutant::deadline_from_the_answer, {.extreme_drift = true})},
        {"renewal_deadline_from_the_answer", Broken::claims,
         with(Mutant::renewal_deadline_from_the_answer)},
        {"no_drift_margin", Broken::claims, with(Mutant::no_drift_margin, {.extreme_drift = true})},
        {"client_on_the_wall_clock", Broken::jobs, with(Mutant::wall_clock)},
        {"late_renewal_accepted", Broken::jobs, with(Mutant::late_renewal_accepted)},
        {"renewal_by_one_node", Broken::claims, with(Mutant::renewal_by_one_node)},
        {"removes_without_comparing", Broken::jobs, with(Mutant::removes_without_comparing)},
        {"removes_another_s_grant", Broken::foreign_key, with(Mutant::removes_without_comparing)},
        {"renews_without_comparing", Broken::claims,
         with(Mutant::renews_without_comparing, {.nodes = 3})},
        {"renews_another_s_grant", Broken::kept_too_long, with(Mutant::renews_without_comparing)},
        {"job_not_killed", Broken::jobs, with(Mutant::job_not_killed)},
        {"no_front", Broken::jobs, with(Mutant::no_front)},
        {"released_before_the_end", Broken::early_release, with(Mutant::released_before_the_end)},
        {"released_before_the_end_of_the_job", Broken::jobs, with(Mutant::released_before_the_end)},
        {"fence_not_written", Broken::falling_fence, with(Mutant::fence_not_written)},
        {"fence_not_written_but_given", Broken::equal_fences, with(Mutant::fence_not_written)},
        {"fence_of_anybody_ties", Broken::equal_fences,
         with(Mutant::fence_of_anybody_ties, {.use = Use::shared_too})},
        {"numbers_given_twice", Broken::jobs,
         with(Mutant::numbers_given_twice, {.use = Use::slots})},
        // A server where the holder is known, but not with its number, counts for nothing.
        {"renewal_without_the_number", Broken::jobs,
         with(Mutant::renewal_without_the_number, {.nodes = 3,
                                                   .clients = 6,
                                                   .use = Use::slots,
                                                   .slots = 3,
                                                   .many_heads = true,
                                                   .crashes = Crashes::forget_for_a_ttl})},
        // An undo that was given up lands later, and takes a grant that was counted.
        {"undo_in_doubt_forgotten", Broken::jobs, with(Mutant::undo_in_doubt_forgotten)},
        // So was a token, which lands in a later attempt that has another number.
        {"number_before_the_token", Broken::jobs,
         with(Mutant::number_before_the_token,
              {.nodes = 3, .clients = 6, .use = Use::slots, .slots = 3, .many_heads = true}),
         true},
        {"write_in_doubt_forgotten", Broken::jobs,
         with(Mutant::write_in_doubt_forgotten,
              {.nodes = 3, .clients = 6, .use = Use::slots, .slots = 3, .many_heads = true}),
         true},
        {"again_whatever_is_there", Broken::foreign_key,
         with(Mutant::again_whatever_is_there, {.crashes = Crashes::forget_for_a_ttl})},
        // Not mutants: what Redlock cannot stand, as dlock-redis(7) says.
        {"undo_doubled_by_the_network", Broken::claims, {.nodes = 3, .undo_doubled = true}, true},
        {"nodes_that_forget_at_once", Broken::jobs, {.crashes = Crashes::forget_at_once}},
        {"counters_that_are_forgotten",
         Broken::falling_fence,
         {.crashes = Crashes::forget_for_a_ttl, .tokens_know_the_time = false}},
        {"node_clocks_jump", Broken::jobs, {.node_clocks_jump = true}},
        {"clocks_drift_too_far", Broken::claims, {.drift = 0.02, .extreme_drift = true}},
    }),
    row_name<Flaw>);

}  // namespace
}  // namespace dlock::sim
