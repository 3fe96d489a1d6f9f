// `dlock run`: acquires locks, starts a command, watches over both, releases.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/backend.hpp"
#include "engine/exit_status.hpp"

namespace dlock {

enum class OnLost { term, kill, ignore };
enum class Leftovers { ignore, wait, kill };

/// The time that a job gets to end, unless --kill-after says otherwise.
constexpr Millis default_kill_after(Millis ttl) { return std::min(Millis{5'000}, ttl / 4); }

/// The largest number of locks of a run.
inline constexpr std::size_t kMostKeys = 64;

/// `dlock once`: what is recorded if the command succeeds.
struct OnceSpec {
  Completion completion;
  int done_status = 0;  // of dlock, if the job is done already
};

/// What `dlock run` was asked for.
struct RunSpec {
  std::vector<std::string> argv;  // the command: at least one element, passed on byte by byte
  std::vector<std::string> keys;  // one at least, each once; in the order given
  Mode mode = Mode::exclusive;
  unsigned slots = 1;
  Millis ttl{30'000};
  std::optional<std::string> label;
  std::optional<Millis> wait;  // none: no limit; 0: try once

  int conflict_status = exit_status::kBusy;
  Leftovers leftovers = Leftovers::ignore;
  Millis kill_after{5'000};       // from SIGTERM to SIGKILL; less than ttl / 2
  bool kill_after_by_ttl = true;  // kill_after is default_kill_after()
  OnLost on_lost = OnLost::term;
  std::optional<Millis> max_hold;
  Millis min_hold{0};
  std::optional<OnceSpec> once;  // then there is one key, in exclusive mode, and no min_hold
  std::string status_file;       // empty: none
  std::string event_log;         // empty: none
};

/// Runs the command under the locks and returns dlock's exit status.  The calling process must have
/// one thread, no initialised client library and no descriptor of its own.  This forks, and changes
/// its signal mask, dispositions and standard descriptors.
int run(const BackendEntry& entry, const Target& target, const RunSpec& spec);

}  // namespace dlock
