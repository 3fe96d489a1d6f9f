// What `dlock watch` prints where there is no terminal, or with --json: a line for each change.
#pragma once

#include "cli/watched_place.hpp"

namespace dlock::cli {

/// The changes of the last look.  `is_first`: of the first one, which has all that is there.
void print_changes(const WatchedPlace& place, bool is_first);

}  // namespace dlock::cli
