// From a request to a lease.
#pragma once

#include <memory>

#include "backends/file/lock_dir.hpp"
#include "backends/file/lock_file.hpp"
#include "backends/file/wait_intervals.hpp"
#include "core/backend.hpp"

namespace dlock::file {

/// If the directory is replaced meanwhile, `dir` is the new one afterwards.
Result<std::unique_ptr<Lease>> acquire(std::shared_ptr<const LockDir>& dir, const Request& request,
                                       const Wait& wait, const WaitIntervals& intervals);

}  // namespace dlock::file
