// Where the file backend keeps what must outlive a boot of the machine.
#pragma once

#include <memory>
#include <string>

#include "backends/file/lock_dir.hpp"

namespace dlock::file {

/// The folder of the counters, which is created when missing: below the lock directory if that was
/// named, else below /var/lib/dlock for root and ~/.local/state/dlock for others.  The home is that
/// of passwd(5), since cron and sudo set another $HOME.
Result<std::shared_ptr<const LockDir>> open_counter_dir(const LockDir& locks);

/// Warns if what is written to `dir` does not outlive a boot.
void warn_of_memory(const LockDir& dir);

/// Makes the names in the directory `path`, and in all above it, durable.
Result<void> sync_with_parents(std::string path);

}  // namespace dlock::file
