// From a request to a lease.
#pragma once

#include <memory>

#include "backends/file/lock_dir.hpp"
#include "backends/file/lock_file.hpp"
#include "core/backend.hpp"

namespace dlock::file {

Result<std::unique_ptr<Lease>> acquire(const std::shared_ptr<const LockDir>& dir,
                                       const Request& request, const Wait& wait);

/// The lock under which seats are taken and files are replaced: held for some microseconds, and
/// never while waiting for another lock.  Errc::busy when whoever has it does not go on (stopped?).
Result<LockFile> take_latch(const Place& place, std::int64_t for_pid, Deadline deadline,
                            Cancel cancel);

}  // namespace dlock::file
