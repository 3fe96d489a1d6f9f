// Re-entry: a lock that a process above us holds already.
#pragma once

#include <memory>
#include <string>

#include "core/backend.hpp"

namespace dlock {

/// A lease on `key`, under the id of its holder, for a process inside a job that holds it: renewed,
/// ended and released by that job's own dlock, which ends all that is below it if the lock is lost,
/// this process included. Null if no job above us holds the lock; Errc::conflict if one does in a
/// mode in which the request would wait for ever.  Costs one inspect(), and only below another
/// dlock: the environment (DLOCK_TOKEN) tells; the lock's own record has the last word.
Result<std::unique_ptr<Lease>> borrow_lease(Backend& backend, const Request& request,
                                            Deadline deadline);

}  // namespace dlock
