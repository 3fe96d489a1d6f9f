// Redis and Redlock under a virtual clock: what can be simulated, and what may come out of it.
//
// World.   True time runs in nanoseconds; one queue of events, ordered by it.  Every process has a
//   clock that runs a little fast or slow.  Messages are lost, doubled, overtaken by later ones, or
//   arrive after the client gave them up; links are cut; servers stop, crash, and come back with
//   their data or without; supervisors are stopped and killed; operators force-release.  How often
//   messages are lost, late and doubled is drawn for each run.
// Servers. The scripts that are shipped (sim_server.hpp).
// Clients. The AcquireProtocol that is shipped, and what the engine does with its LeaseSchedule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim_server.hpp"

namespace dlock::sim::protocol {

/// What a client does wrong on purpose.
enum class Rule : std::uint8_t {
  all_kept,
  // of the lease
  deadline_from_the_answer,
  renewal_deadline_from_the_answer,
  no_drift_allowance,
  wall_clock,
  late_renewal_accepted,
  renewal_by_one_server,
  job_not_killed,
  no_launcher,
  released_before_the_end,
  // of the protocol
  votes_of_one_server,
  one_round_for_all,
  undo_names_later_rounds,
  no_front_round,
  never_loud,
};

/// Which locks the clients ask for.
enum class Use : std::uint8_t { exclusive, shared_too, slots, all_modes };

/// What a server that has crashed comes back with, and when.
enum class Crashes : std::uint8_t {
  none,
  keep_data,
  forget_for_a_ttl,  // it returns later than that
  forget_at_once,    // beyond what Redlock can stand
};

struct Setting {
  const char* name = "";
  unsigned servers = 5;
  unsigned clients = 4;
  unsigned dead = 0;  // servers that never answer
  Use use = Use::exclusive;
  unsigned slots = 2;
  double drift = 0.01;
  bool extreme_drift = false;  // every clock runs as fast or as slow as it may
  bool far_away = false;       // every message takes its time
  bool reliable = false;       // no message is lost or late, no link is cut, no server is stopped
  unsigned stopped = 100;      // so many of the clients are stopped now and then
  unsigned killed = 100;       // so many are killed
  bool crowd_stops = false;    // all but one are stopped at once
  bool breaks = false;         // an operator force-releases, or deletes the lock by hand
  Crashes crashes = Crashes::none;
  bool server_clocks_jump = false;
  bool one_reaches_only_first = false;
  double release_lost_at_first = 0;  // how often, by the first server
  Millis ttl{10'000};
  Rule broken_rule = Rule::all_kept;
  std::vector<ScriptBug> bugs = {};
  /// From here on nothing fails.
  Millis calm_from{60'000};
  Millis length{150'000};
  /// For so long a lock may be free that a living client waits for; in the calm only, or always.
  Millis free_at_most{8'000};
  bool always_live = false;
};

enum class Broken : std::uint8_t {
  claims,          // two that exclude each other, or have the same number, or more than there are
                   // slots, trusted their leases at the same time
  jobs,            // ... had jobs that ran at the same time
  equal_fences,    // two grants with the same fencing token
  falling_fence,   // a later grant with a smaller one
  lost_too_soon,   // a holder was told that a majority does not have its grant, while that was good
  early_release,   // before the job had ended
  server,          // a script changed another's grant, kept one for too long, gave a number twice
  outlived_break,  // a holder went on after it was force-released
  free_too_long,   // while a living client waited
  out_of_order,    // a later waiter was granted the lock before an earlier one
  left,            // something is left when all have gone
};
const char* name_of(Broken broken);

struct Verdict {
  std::optional<Broken> broken;
  std::string how;

  // That the simulation does what it should be about.
  std::uint64_t requests = 0;
  std::uint64_t grants = 0;
  std::uint64_t waits = 0;  // grants of clients that were refused first
  std::uint64_t renewals = 0;
  std::uint64_t losses = 0;
  std::uint64_t failed_rounds = 0;
  std::uint64_t front_rounds = 0;
  std::uint64_t overtaken = 0;
  std::uint64_t taken = 0;
  std::uint64_t agains = 0;
  std::uint64_t breaks = 0;
  std::uint64_t given_up = 0;
  std::uint64_t launcher_kills = 0;
  Nanos longest_free{0};
  Nanos longest_wait{0};
};

struct Watch {
  /// Ends the run at the first of this kind, and lets all others pass; none: at the first of any.
  std::optional<Broken> only;
  bool claims = true;
  /// Tells on stderr what happens.
  bool trace = false;
};

/// The same seed gives the same run.
Verdict simulate(const Setting& setting, std::uint64_t seed, const Watch& watch);

}  // namespace dlock::sim::protocol
