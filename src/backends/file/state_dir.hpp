// The directories of records, which must outlive a boot of the machine.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "backends/file/lock_dir.hpp"

namespace dlock::file {

// They are below the lock directory.  Those of the default directory (LockDir::is_usual) are below
// /var/lib/dlock for root and ~/.local/state/dlock for other users, with the home of passwd(5),
// since cron and sudo set another $HOME.

/// The folder of the counters, which is created when missing.
Result<std::shared_ptr<const LockDir>> open_counter_dir(const LockDir& locks);

/// The folder of the marks; null if it is missing and Missing::leave is given.
Result<std::shared_ptr<const LockDir>> open_mark_dir(const LockDir& locks, Missing missing);

/// Warns of `what` ("its counters begin again") if `dir` is in memory, and so does not outlive a
/// boot, or below /tmp or /var/tmp, where old files are deleted.
void warn_of_loss(const LockDir& dir, std::string_view what);

/// Warns if the marks are in `dir`, on a network file system, and the locks are not.
void warn_of_other_machines(const LockDir& locks, const LockDir& dir);

/// Makes the names in the directory `path`, and in all above it, durable.
Result<void> sync_with_parents(std::string path);

}  // namespace dlock::file
