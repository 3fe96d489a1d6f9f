// The numbers of `dlock id` on this host.
#pragma once

#include <cstdint>
#include <string_view>

#include "backends/file/lock_dir.hpp"
#include "core/backend.hpp"

namespace dlock::file {

/// See Backend.  `locks`: the directory of the locks.
Result<std::uint64_t> take_numbers(const LockDir& locks, std::string_view name, std::uint64_t count,
                                   Deadline deadline);
Result<IdWindow> lease_window(const LockDir& locks, Millis length, Deadline deadline);

}  // namespace dlock::file
