// Where the file backend keeps what must outlive a boot of the machine.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "backends/file/lock_dir.hpp"

namespace dlock::file {

// Its folders are below the lock directory, but for the usual one (LockDir::is_usual) below
// /var/lib/dlock for root and ~/.local/state/dlock for others.  The home is that of passwd(5),
// since cron and sudo set another $HOME.

/// The folder of the counters, which is created when missing.
Result<std::shared_ptr<const LockDir>> open_counter_dir(const LockDir& locks);

/// The folder of the marks; null if it is missing and to be left so.
Result<std::shared_ptr<const LockDir>> open_mark_dir(const LockDir& locks, Missing missing);

/// If what is written to `dir` does not outlive a boot, because it is in memory, warns of `what`
/// ("its counters begin again") after that; likewise where it is below /tmp or /var/tmp, and
/// deleted when it is old.
void warn_of_loss(const LockDir& dir, std::string_view what);

/// If the marks are in `dir`, on a network file system, and the locks are not, warns of that.
void warn_of_other_machines(const LockDir& locks, const LockDir& dir);

/// Makes the names in the directory `path`, and in all above it, durable.
Result<void> sync_with_parents(std::string path);

}  // namespace dlock::file
