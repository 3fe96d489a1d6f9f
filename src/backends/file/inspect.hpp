// Who holds a lock and who waits, found out without taking it.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "backends/file/lock_dir.hpp"
#include "backends/file/lock_file.hpp"
#include "backends/file/proc_locks.hpp"
#include "core/backend.hpp"

namespace dlock::file {

/// True if `file`, an open lock file or seat, is locked by the holder that `record` tells of.
bool is_live(const LockFile& file, const Record& record, const std::vector<FlockLine>& locks);

/// True for a process that runs dlock, by its name.
bool is_dlock(pid_t pid);

Result<LockInfo> look(const std::shared_ptr<const LockDir>& dir, std::string_view key);
Result<std::vector<LockInfo>> look_at_all(const std::shared_ptr<const LockDir>& dir,
                                          std::string_view prefix);

}  // namespace dlock::file
