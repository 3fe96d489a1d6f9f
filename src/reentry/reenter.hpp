// The nested run's side of re-entry: see protocol.hpp.
#pragma once

#include <memory>

#include "core/backend.hpp"
#include "util/clock.hpp"

namespace dlock {

/// A lease on the lock `request.key` of the run above this one that holds it: renewed and released
/// by that run.  Null if no run above holds the lock; Errc::conflict if one does in a mode in which
/// the request would never be granted.  If `wait` has no end, a lock that is held by a process
/// above this one which does not answer for it is refused, too.  Without DLOCK_SUPERVISORS it costs
/// nothing, with it one inspect(), which is repeated as acquire() would be.  Errc::unreachable if a
/// supervisor above does not answer within `connect_timeout`: the request might wait for its own
/// job.
Result<std::unique_ptr<Lease>> reenter(Backend& backend, const Request& request, const Wait& wait,
                                       Millis connect_timeout);

}  // namespace dlock
