// The nested run's side of re-entry: see protocol.hpp.
#pragma once

#include <memory>

#include "core/backend.hpp"
#include "util/clock.hpp"

namespace dlock {

/// A lease on the lock `request.key` that a run above this one holds; that run renews and releases
/// the lock.  Null if no run above holds it.  Errc::conflict if one holds it in a mode in which the
/// request would never be granted.  Errc::unreachable if a supervisor above does not answer within
/// `connect_timeout`, since the request might wait for its own job; or if `wait` has no end and a
/// process above holds the lock but does not answer for it.  Without DLOCK_SUPERVISORS it costs
/// nothing, with it one inspect(), which is repeated as acquire() would be.
Result<std::unique_ptr<Lease>> reenter(Backend& backend, const Request& request, const Wait& wait,
                                       Millis connect_timeout);

}  // namespace dlock
