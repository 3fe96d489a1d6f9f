// How a run ended: the source of the exit status, the status file and the last message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/owner.hpp"
#include "core/result.hpp"
#include "util/clock.hpp"

namespace dlock {

struct Outcome {
  std::string_view name;  // of the status file: completed, done, busy, lost, unreachable, denied,
                          // max-hold, signalled, not-started, error
  int exit_status = 0;
  std::string reason;  // empty: nothing to explain
  std::string backend;
  std::optional<std::uint64_t> fence;
  Millis waited{0};
  Millis held{0};

  // For the event log.
  bool killed = false;         // one of the two processes was
  bool is_returned = true;     // dlock returned the exit status
  std::optional<Owner> other;  // Acquisition::other()
};

/// The outcome and the exit status of a lock that was not acquired.
Outcome not_acquired(const Error& error, int conflict_status);

}  // namespace dlock
