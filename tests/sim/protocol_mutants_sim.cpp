// What must be found, or the simulation of the protocol says nothing: each rule of a client, and
// each condition of a script, left out.  The rest are what Redlock cannot stand, as dlock-redis(7)
// says.
//
// These conditions are not in the list, since what they are for is not looked at here:
//   ask      a waiter joins before the decision, and is asked whether it is first: the order after
//            an expiry and after a return.  The offer to the next reader: up to 3 s of its time.
//            "mode" and "duplicate": what the user is told
//   vote     '@again': several holders come back to a server that has lost its data, not only one
//   leave    the queue entry or the record: one of the two is enough for others.  The counter of a
//            server that had none: the holder comes back there
//   renew    the first waiter is told of an end that is sooner: up to 3 s of its time.  One that is
//            late shortens nothing: all renewals are for the same ttl here
//   numbers  of holders that an operator has deleted by hand
// Not found within 10,000 seeds: ask, that a place does not count the dead; vote, that "again" is
// refused where the counter has the token (an operator has deleted the lock) and where the waiter
// has the lock; and that the record of a grant that was overtaken has no token.

#include <gtest/gtest.h>

#include <array>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/scripts.hpp"
#include "effort.hpp"
#include "protocol_setting.hpp"

namespace dlock::sim::protocol {
namespace {

using redis::kAsk;
using redis::kBreak;
using redis::kComplete;
using redis::kLeave;
using redis::kRenew;
using redis::kVote;

// So that each seed of a mutant is under other conditions.
std::vector<Setting> conditions() {
  const Setting network{.breaks = true, .crashes = Crashes::keep_data};
  const Setting forgets{.breaks = true, .crashes = Crashes::forget_for_a_ttl};
  const Setting live{
      .clients = 6, .reliable = true, .stopped = 0, .killed = 0, .always_live = true};
  std::vector<Setting> out;
  const auto add = [&](Setting setting, unsigned servers, Use use) -> Setting& {
    setting.servers = servers;
    setting.use = use;
    return out.emplace_back(setting);
  };
  add(network, 1, Use::slots).clients = 6;
  add(network, 1, Use::shared_too);
  add(network, 1, Use::all_modes);
  add(network, 3, Use::exclusive);
  add(forgets, 3, Use::slots);
  add(forgets, 5, Use::shared_too);
  add(live, 1, Use::exclusive).free_at_most = Millis{100};
  add(live, 1, Use::slots).killed = 6;
  Setting& one_is_killed = add(live, 1, Use::exclusive);
  one_is_killed.killed = 1;
  one_is_killed.free_at_most = Millis{1'200};  // while it is offered the lock
  Setting& one_is_stopped = add(live, 1, Use::exclusive);
  one_is_stopped.clients = 3;
  one_is_stopped.stopped = 1;
  one_is_stopped.free_at_most = Millis{1'500};
  Setting& crowd = add(live, 1, Use::exclusive);
  crowd.clients = 15;
  crowd.crowd_stops = true;
  Setting& lost = add(live, 3, Use::exclusive);
  lost.clients = 4;
  lost.release_lost_at_first = 0.5;
  lost.ttl = Millis{15'000};
  lost.free_at_most = Millis{8'300};
  return out;
}

/// Whether one of `settings`, in turn, breaks a promise within so many seeds.
testing::AssertionResult is_found(const std::vector<Setting>& settings, Watch watch = {}) {
  const std::uint64_t most = kSanitized ? 12 : is_soak() ? 10'000 : 1'000;
  for (std::uint64_t seed = 1; seed <= most; ++seed) {
    const Verdict verdict = simulate(settings[seed % settings.size()], seed, watch);
    if (!verdict.broken) continue;
    testing::Test::RecordProperty("first_seed", std::to_string(seed));
    testing::Test::RecordProperty("how", name_of(*verdict.broken));
    return testing::AssertionSuccess();
  }
  if (kSanitized) return testing::AssertionSuccess();  // that they run is all it says
  return testing::AssertionFailure() << "not found";
}

// ------------------------------------------------------------------------------------ the scripts

struct Mutant {
  const char* name;
  std::vector<const redis::Script*> scripts;
  std::string_view from;
  std::string_view to;
  bool is_rare = false;  // it takes hundreds of seeds: in soak
};

void PrintTo(const Mutant& mutant, std::ostream* out) { *out << mutant.name; }

class ScriptMutant : public testing::TestWithParam<Mutant> {};

TEST_P(ScriptMutant, IsFound) {
  if (GetParam().is_rare && !is_soak()) return;
  std::vector<Setting> settings = conditions();
  for (Setting& setting : settings) {
    for (const redis::Script* script : GetParam().scripts) {
      setting.bugs.push_back({script, GetParam().from, GetParam().to});
    }
  }
  EXPECT_TRUE(is_found(settings));
}

const std::vector<const redis::Script*> kAll{&kAsk, &kBreak, &kComplete, &kLeave, &kRenew, &kVote};

std::string mutant_name(const testing::TestParamInfo<Mutant>& mutant) { return mutant.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Common, ScriptMutant,
    testing::ValuesIn(std::vector<Mutant>{
        {"holders_whose_time_is_over_stay", kAll,
         "if redis.call('HEXISTS', owner, '~' .. holder) == 1 then drop(holder) end", ""},
        {"any_holder_is_ours", kAll, "return holder == W and (tonumber(its_round) or 0) or nil",
         "return holder and (tonumber(its_round) or 0) or nil"},
        {"room_in_another_mode", kAll, "if its_mode ~= wanted or wanted == 'x' or",
         "if its_mode == 'x' or wanted == 'x' or", true},
        {"room_for_all", kAll,
         "return wanted == 's' or redis.call('ZCARD', lock) < tonumber(string.sub(wanted, 2))",
         "return true"},
        {"a_key_without_an_end", kAll, "redis.call('PEXPIREAT', lock, whole(last))", ""},
        {"the_silent_stay_first", kAll, "if is_text(record) then return found, record end",
         "if true then return found, is_text(record) and record or '{}' end"},
        {"no_room_looked_for_again", kAll, "return me ~= nil and has_room(held(), mode) end",
         "return me ~= nil end"},
        {"offers_without_room", kAll, "local is_free = has_room(held(), its_mode)",
         "local is_free = true"},
        {"offers_to_the_dead", kAll, "(is_polling(record) or tell(waiter, 'go'))",
         "(is_polling(record) or tell(waiter, 'go') or true)"},
        {"the_second_sleeps_on", kAll, "tell_first('look ' .. kOffer)", ""},
        {"offers_for_ever", kAll, "kOffer = 1000", "kOffer = 10000"},
    }),
    mutant_name);

INSTANTIATE_TEST_SUITE_P(
    Ask, ScriptMutant,
    testing::ValuesIn(std::vector<Mutant>{
        {"of_one_that_was_given_up", {&kAsk}, "if redis.call('EXISTS', KEYS[6]) == 1", "if false"},
        {"of_an_earlier_round", {&kAsk}, "if ours and ours > round then", "if false then"},
        {"the_first_sleeps_too_long",
         {&kAsk},
         "if place < kFront and left >= 0 then",
         "if false then"},
        {"token_of_the_clock_alone",
         {&kAsk},
         "local token = redis.pcall('INCR', counter)",
         "local token = now"},
        {"token_without_the_clock", {&kAsk}, "if token < now then", "if false then", true},
        {"number_of_another", {&kAsk}, "while others[free] do free = free + 1 end", ""},
        {"a_holder_stays_in_the_queue", {&kAsk}, "try('ZREM', queue, entry)", ""},
        {"silent_for_ever", {&kAsk}, "kStagger, kDay = 5000", "kStagger, kDay = 60000"},
    }),
    mutant_name);

INSTANTIATE_TEST_SUITE_P(
    Vote, ScriptMutant,
    testing::ValuesIn(std::vector<Mutant>{
        {"for_one_that_was_given_up",
         {&kVote},
         "if redis.call('EXISTS', KEYS[5]) == 1",
         "if false"},
        {"for_an_earlier_round", {&kVote}, "if ours and ours > round then", "if false then", true},
        {"without_room",
         {&kVote},
         "if not ours and not has_room(its_mode, mode) then",
         "if false then"},
        {"with_any_token",
         {&kVote},
         "overtaken = counted > token or counted == token and not is_ours",
         ""},
        {"with_a_smaller_token",
         {&kVote},
         "counted > token or counted == token and",
         "counted == token and"},
        {"with_the_token_of_another", {&kVote}, "or counted == token and not is_ours", "", true},
        {"with_the_number_of_another", {&kVote}, "if holder and holder ~= W and", "if false and"},
        {"without_counting", {&kVote}, "if counted < token then set_counter(token) end", ""},
        {"a_holder_stays_in_the_queue", {&kVote}, "redis.call('ZREM', queue, entry)", ""},
    }),
    mutant_name);

INSTANTIATE_TEST_SUITE_P(
    Leave, ScriptMutant,
    testing::ValuesIn(std::vector<Mutant>{
        {"of_a_later_round",
         {&kLeave},
         "local has_it = ours and ours <= round",
         "local has_it = ours"},
        {"takes_from_anybody",
         {&kLeave},
         "local has_it = ours and ours <= round",
         "local has_it = its_mode == 'x'"},
        {"stays_in_the_queue",
         {&kLeave},
         "was_queued = try('ZREM', queue, entry) == 1\n  redis.call('DEL', KEYS[5])",
         ""},
        {"no_mark_in_doubt", {&kLeave}, "if void then", "if false then"},
        {"nobody_is_offered_it",
         {&kLeave},
         "if (has_it or was_queued) and not quiet then offer() end",
         ""},
    }),
    mutant_name);

INSTANTIATE_TEST_SUITE_P(
    Renew, ScriptMutant,
    testing::ValuesIn(std::vector<Mutant>{
        {"of_another", {&kRenew}, "if ours ~= round then", "if its_mode == 'none' then"},
        {"of_an_earlier_round", {&kRenew}, "if ours ~= round then", "if not ours then", true},
        {"does_not_extend", {&kRenew}, "redis.call('PEXPIRE', lock, whole(ttl))", ""},
        {"does_not_extend_a_shared_lock",
         {&kRenew},
         "redis.call('ZADD', lock, 'XX', whole(ends), W)",
         ""},
    }),
    mutant_name);

INSTANTIATE_TEST_SUITE_P(
    Break, ScriptMutant,
    testing::ValuesIn(std::vector<Mutant>{
        {"whoever_has_it",
         {&kBreak},
         "if is_there then take(its_mode, W) end",
         "if is_there or its_mode == 'x' then take(its_mode, W) end"},
        {"any_round",
         {&kBreak},
         "is_there = round_held(its_mode) == round",
         "is_there = round_held(its_mode)"},
        {"is_not_remembered", {&kBreak}, "if round > 0 then\n", "if false then\n"},
    }),
    mutant_name);

// -------------------------------------------------------------------------------------- the rules

struct Flaw {
  const char* name;
  Broken breaks;
  Setting setting;
};

void PrintTo(const Flaw& flaw, std::ostream* out) { *out << flaw.name; }

class ProtocolFlaw : public testing::TestWithParam<Flaw> {};

TEST_P(ProtocolFlaw, IsFound) {
  EXPECT_TRUE(is_found({GetParam().setting}, {.only = GetParam().breaks}));
}

Setting without(Rule rule, Setting setting = {}) {
  setting.broken_rule = rule;
  return setting;
}

INSTANTIATE_TEST_SUITE_P(
    Lease, ProtocolFlaw,
    testing::ValuesIn(std::vector<Flaw>{
        {"deadline_from_the_answer", Broken::claims,
         without(Rule::deadline_from_the_answer,
                 {.servers = 1, .extreme_drift = true, .far_away = true, .ttl = Millis{1'000}})},
        {"renewal_deadline_from_the_answer", Broken::claims,
         without(Rule::renewal_deadline_from_the_answer,
                 {.servers = 1, .extreme_drift = true, .far_away = true, .ttl = Millis{500}})},
        {"no_drift_allowance", Broken::claims,
         without(Rule::no_drift_allowance, {.extreme_drift = true})},
        {"client_on_the_wall_clock", Broken::jobs, without(Rule::wall_clock)},
        {"late_renewal_accepted", Broken::jobs, without(Rule::late_renewal_accepted)},
        {"renewal_by_one_server", Broken::claims, without(Rule::renewal_by_one_server)},
        {"job_not_killed", Broken::jobs, without(Rule::job_not_killed)},
        {"no_launcher", Broken::jobs, without(Rule::no_launcher)},
        {"released_before_the_end", Broken::early_release, without(Rule::released_before_the_end)},
    }),
    [](const auto& flaw) { return flaw.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Rules, ProtocolFlaw,
    testing::ValuesIn(std::vector<Flaw>{
        {"votes_of_one_server", Broken::claims, without(Rule::votes_of_one_server, {.servers = 3})},
        {"one_round_for_all", Broken::claims, without(Rule::one_round_for_all, {.servers = 3})},
        {"undo_names_later_rounds", Broken::claims,
         without(Rule::undo_names_later_rounds, {.servers = 3})},
        {"no_front_round", Broken::free_too_long,
         without(Rule::no_front_round, {.servers = 3,
                                        .reliable = true,
                                        .stopped = 0,
                                        .killed = 0,
                                        .release_lost_at_first = 0.5,
                                        .ttl = Millis{15'000},
                                        .free_at_most = Millis{8'300},
                                        .always_live = true})},
        {"never_loud", Broken::free_too_long,
         without(Rule::never_loud, {.servers = 3,
                                    .reliable = true,
                                    .stopped = 0,
                                    .killed = 0,
                                    .one_reaches_only_first = true,
                                    .free_at_most = Millis{1'500},
                                    .always_live = true})},
    }),
    [](const auto& flaw) { return flaw.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Limits, ProtocolFlaw,
    testing::ValuesIn(std::vector<Flaw>{
        {"servers_that_forget_at_once", Broken::jobs, {.crashes = Crashes::forget_at_once}},
        {"server_clocks_jump", Broken::jobs, {.server_clocks_jump = true}},
        {"clocks_drift_too_far", Broken::claims, {.drift = 0.02, .extreme_drift = true}},
    }),
    [](const auto& flaw) { return flaw.param.name; });

}  // namespace
}  // namespace dlock::sim::protocol
