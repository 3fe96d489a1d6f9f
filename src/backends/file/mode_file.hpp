// Whether the holders of a lock that several can have share it or have slots of it, and how many.
#pragma once

#include "backends/file/lock_file.hpp"
#include "core/backend.hpp"

namespace dlock::file {

/// The lock under which shared and slots locks are granted: held for some microseconds, and never
/// while waiting for another lock.  Errc::unreachable when whoever has it does not go on
/// (stopped?).
Result<LockFile> take_latch(const Place& place, const Request& request, const Wait& wait);

/// The file that says the mode of all its holders, with LOCK_SH: they are of the mode of `request`.
/// Errc::conflict: there are holders in another mode.  Only with the latch held.
Result<LockFile> take_mode(const Place& place, const Request& request);

}  // namespace dlock::file
