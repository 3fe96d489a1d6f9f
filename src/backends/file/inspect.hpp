// Who holds a lock and who waits, found out without taking it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/file/lock_dir.hpp"
#include "core/backend.hpp"

namespace dlock::file {

/// All that can be known: of other programs, too.
Result<LockInfo> look(const std::shared_ptr<const LockDir>& dir, std::string_view key);
Result<std::vector<LockInfo>> look_at_all(const std::shared_ptr<const LockDir>& dir,
                                          std::string_view prefix);

/// The holders, and how many wait.  What costs more is asked only if there is no holder to be seen.
Result<LockInfo> who_is_in_the_way(const Place& place, std::string_view key);

/// Of the newest grant: another number after another grant.  0: there is none.
std::uint64_t newest_fence(const Place& place);

}  // namespace dlock::file
