// The nested run's side of re-entry: see reentry.hpp.
#pragma once

#include <memory>

#include "core/backend.hpp"

namespace dlock {

/// A lease on the lock `request.key`, borrowed from the run above this one that holds it: renewed
/// and released by that run.  Null if no run above holds the lock; Errc::conflict if one does in a
/// mode in which the request would never be granted.  If `wait` has no end, a lock that is held by
/// a process above this one, but not lent, is refused, too.  Without DLOCK_SUPERVISORS it costs
/// nothing, with it one inspect(), which is repeated as acquire() would be.  Errc::unreachable if a
/// supervisor above does not answer within `connect_timeout`: the request might wait for its own
/// job.
Result<std::unique_ptr<Lease>> borrow_lease(Backend& backend, const Request& request,
                                            const Wait& wait, Millis connect_timeout);

}  // namespace dlock
