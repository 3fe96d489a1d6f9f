// What `dlock watch` concludes from two looks at the locks.  No clock, no terminal, no backend.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "cli/lock_columns.hpp"
#include "core/backend.hpp"
#include "util/clock.hpp"

namespace dlock::cli {

enum class Change { none, came, gone };

struct ChangedRow {
  LockRow row;  // a holder, a waiter, or a lock without a holder
  Change change = Change::none;
  std::string_view profile = {};  // where it is, if several backends are shown
};

/// The rows of both looks, by key; of one key, those that have gone come first.  A waiter that now
/// holds the lock has not gone.  The rows point into `before` and `now`, which are sorted by key.
std::vector<ChangedRow> compare(std::span<const LockInfo> before, std::span<const LockInfo> now);

/// If there are more than `most` rows, leaves the holders that have held longest, these first.
/// Returns how many rows it has removed.
std::size_t keep_longest_held(std::vector<ChangedRow>& rows, std::size_t most);

/// The time from one look, which took so long, to the next: `wanted`, or longer, so that looks take
/// at most a twentieth of the time of a server.
Millis interval_for(Millis wanted, Millis took);

}  // namespace dlock::cli
