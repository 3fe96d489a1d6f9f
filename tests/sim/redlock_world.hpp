// Redlock under a virtual clock: what can be simulated, and what may come out of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "local_clock.hpp"

namespace dlock::sim {

/// What the client, or a server, does wrong on purpose.
enum class Mutant {
  none,
  deadline_from_the_answer,
  renewal_deadline_from_the_answer,
  no_drift_margin,
  wall_clock,
  late_renewal_accepted,
  renewal_by_one_node,
  removes_without_comparing,
  renews_without_comparing,
  job_not_killed,
  no_front,
  released_before_the_end,
  fence_not_written,
  fence_of_anybody_ties,
  numbers_given_twice,
  renewal_without_the_number,
  undo_in_doubt_forgotten,
  write_in_doubt_forgotten,
  number_before_the_token,
  again_whatever_is_there,
};

/// Which locks the clients ask for.
enum class Use { exclusive, shared_too, slots, all_modes };

/// What a server that has crashed comes back with, and when.
enum class Crashes {
  none,
  keep_data,
  forget_for_a_ttl,  // it returns later than that
  forget_at_once,    // beyond what Redlock can stand
};

struct Setting {
  const char* name = "";
  unsigned nodes = 5;
  unsigned clients = 4;
  unsigned dead = 0;  // servers that never answer
  Use use = Use::exclusive;
  unsigned slots = 2;       // of every lock in slots mode
  bool many_heads = false;  // clients ask this or that server first, as those do that wait
  double drift = 0.01;
  bool extreme_drift = false;  // every clock runs as fast or as slow as it may
  bool far_away = false;       // every message takes its time
  Crashes crashes = Crashes::none;
  bool node_clocks_jump = false;
  bool tokens_know_the_time = true;  // where servers forget; else their counters must be enough
  bool undo_doubled = false;         // by the network, as TCP does not
  Mutant mutant = Mutant::none;
  /// From here on nothing fails, and each client goes once more.  All must be served by the end.
  Millis calm_from = kNoCalm;
  Millis length{120'000};

  static constexpr Millis kNoCalm{1'000'000'000};
};

enum class Broken {
  claims,         // two that exclude each other, or have the same number, or more than there are
                  // slots, trusted their leases at the same time
  jobs,           // ... had jobs that ran at the same time
  equal_fences,   // two grants with the same fencing token
  falling_fence,  // a later grant with a smaller one
  lost_too_soon,  // a holder was told that a majority does not have its grant, while that was good
  early_release,  // before the job had ended
  foreign_key,    // an operation changed another's grant
  kept_too_long,  // a server kept a grant for longer than a ttl after its holder's last request
  wrong_number,   // a slots holder has two on a server, or renewed another than was agreed on
  starved,        // a client was not served in time, with nothing failing
};
const char* name_of(Broken broken);

struct Verdict {
  std::optional<Broken> broken;
  std::string how;

  // That the simulation does what it should be about.
  std::uint64_t requests = 0;
  std::uint64_t grants = 0;
  std::uint64_t renewals = 0;
  std::uint64_t losses = 0;
  std::uint64_t stuck = 0;      // attempts that failed though nobody was in the way
  std::uint64_t overtaken = 0;  // fencing tokens
  std::uint64_t taken = 0;      // numbers of slots, by another at a server
  std::uint64_t doubts = 0;     // undos without an answer
  std::uint64_t agains = 0;     // a server that had lost its data was given a lease again
  std::uint64_t front_kills = 0;
  Nanos longest_wait{0};  // in the calm
};

struct Watch {
  /// Ends the run at the first of this kind, and lets all others pass; none: at the first of any.
  std::optional<Broken> only;
  bool fences = true;
  bool claims = true;
  /// Tells on stderr what happens.
  bool trace = false;
};

/// The same seed gives the same run.
Verdict simulate(const Setting& setting, std::uint64_t seed, const Watch& watch);

}  // namespace dlock::sim
