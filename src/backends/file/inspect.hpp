// The holders and the waiters of a lock, found without locking it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/file/lock_dir.hpp"
#include "core/backend.hpp"

namespace dlock::file {

/// All holders and waiters, other programs included.
Result<LockInfo> look(const std::shared_ptr<const LockDir>& dir, std::string_view key);
Result<std::vector<LockInfo>> look_at_all(const std::shared_ptr<const LockDir>& dir,
                                          std::string_view prefix);

/// The holders, and the number of waiters.  Other programs are included only if no dlock is found
/// to hold the lock, since that takes longer.
Result<LockInfo> who_is_in_the_way(const Place& place, std::string_view key);

/// The fence of the newest grant, which changes with each grant; 0 if there is none.
std::uint64_t newest_fence(const Place& place);

}  // namespace dlock::file
