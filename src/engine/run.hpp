// Acquire, start, watch over, release: the one place where locks and a process meet.
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

/// A job gets so long to end, unless --kill-after says otherwise.
constexpr Millis default_kill_after(Millis ttl) { return std::min(Millis{5'000}, ttl / 4); }

/// So many locks can a run have.
inline constexpr std::size_t kMostKeys = 64;

/// `dlock once`: what is remembered if the command succeeds.
struct OnceSpec {
  Completion completion;
  int done_status = 0;  // of dlock, if it is remembered already
};

/// What `dlock run` was asked for.
struct RunSpec {
  std::vector<std::string> argv;  // the command: at least one element, passed on byte by byte
  std::vector<std::string> keys;  // one at least, each once; in the order given
  Mode mode = Mode::exclusive;
  unsigned slots = 1;
  Millis ttl{30'000};
  std::optional<std::string> label;
  std::optional<Millis> wait;  // none: for ever; 0: try once

  int conflict_status = exit_status::kBusy;
  Leftovers leftovers = Leftovers::ignore;
  Millis kill_after{5'000};       // from SIGTERM to SIGKILL; less than ttl / 2
  bool kill_after_by_ttl = true;  // nobody has asked for another than default_kill_after()
  OnLost on_lost = OnLost::term;
  std::optional<Millis> max_hold;
  Millis min_hold{0};
  std::optional<OnceSpec> once;  // then there is one key, in exclusive mode, and no min_hold
  std::string status_file;       // empty: none
  std::string event_log;         // empty: none
};

/// Runs the command under the locks and returns dlock's exit status.  To be called from a process
/// with one thread that has initialised no client library and opened no descriptor of its own; it
/// forks, and changes signal mask, dispositions and standard descriptors of the calling process.
int run(const BackendEntry& entry, const Target& target, const RunSpec& spec);

}  // namespace dlock
