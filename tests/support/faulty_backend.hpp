// Any backend, failing on command.
#pragma once

#include <memory>
#include <string>

#include "core/backend.hpp"

namespace dlock::test {

/// `faulty:///path/of/control?wrap=memory:///dev/shm/dir/store`.  Before each call the control file
/// is read; a line is
///     CALL FAULT [DURATION] [COUNT]
/// CALL: open acquire renew release complete list inspect force_release find_mark prepare_marks.
/// FAULT:
///     unreachable denied lost    fails so, without asking the wrapped backend
///     hang                       until the deadline (unreachable) or Cancel (cancelled)
///     ignore-deadline DURATION   blocks for that long, whatever the deadline, then is unreachable
///     late                       asks, and returns the answer once the old valid_until has passed
///                                (of a grant: its own); of complete: loses it (unreachable)
/// COUNT: for the first so many calls of this backend only.  No file, no faults.  Each call adds a
/// line `CALL MILLISECONDS` (CLOCK_BOOTTIME) to `<control>.log`.
BackendEntry faulty_entry();

/// The same around a backend that is there already.
std::unique_ptr<Backend> make_faulty(std::unique_ptr<Backend> wrapped, std::string control);

}  // namespace dlock::test
