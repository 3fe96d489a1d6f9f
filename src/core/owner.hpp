// Who holds or wants a lock, or has done a job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "util/clock.hpp"

namespace dlock {

/// As `dlock show` prints it on another machine.
struct Owner {
  /// Which command of dlock took it.  What `acquire` took is given back by its token.
  enum class Kind { run, acquire, once };

  // 128 random bits in hex, new for every acquire; of the holders in some backends with a colon and
  // a number; see Lease::owner_id()
  std::string id;
  std::string host;
  std::int64_t pid = 0;  // of the process that the user started; 0: no process keeps the lock
  std::string user;
  std::string command;               // argv[0] only: the arguments may hold secrets
  std::optional<std::string> label;  // --label
  bool ended = false;                // the command has ended: the lock is kept for --min-hold
  Kind kind = Kind::run;
  std::optional<Millis> lease;  // nobody keeps it: for so long it was taken, and is renewed
};

/// The part of a lock id that its waiter had, too.  What is no lock id stays as it is.
inline std::string_view without_number(std::string_view lock_id) {
  constexpr std::size_t kDigits = 32;
  return lock_id.find(':') == kDigits ? lock_id.substr(0, kDigits) : lock_id;
}

/// "run", "acquire", "once": as written in records and JSON.
std::string_view kind_name(Owner::Kind kind);
std::optional<Owner::Kind> parse_kind(std::string_view name);

}  // namespace dlock
