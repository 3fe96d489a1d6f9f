// Locks between the processes of one machine: flock(2) on files in a directory.
#pragma once

#include <string>

#include "backends/file/wait_intervals.hpp"
#include "core/backend.hpp"

namespace dlock::file {

/// As BackendEntry says.
Result<std::string> place(const Target& target);
Result<std::unique_ptr<Backend>> open(const Target& target, Deadline deadline, Cancel cancel);

/// The same with other intervals: tests shorten them.
Result<std::unique_ptr<Backend>> open_with(const Target& target, const WaitIntervals& intervals);

}  // namespace dlock::file
