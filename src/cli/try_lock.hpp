// The part of `dlock doctor` that uses a lock as jobs, waiters and operators do.
#pragma once

#include <string>

#include "core/backend.hpp"

namespace dlock::cli {

/// Acquires, renews, shows, lists and releases `key`, wakes a waiter, breaks the lock and, with
/// `with_marks`, remembers and forgets that its job is done: a finding for each.  Ends at the first
/// failure, which then says `rights` if something was denied, and when `cancel` fires.  Holds no
/// lock afterwards.  `key` is one that nobody else uses; `owners` gets the ids by which it was
/// held or wanted.
Findings try_lock(const BackendEntry& entry, const Target& target, const std::string& key,
                  bool with_marks, const std::string& rights, Deadline deadline, Cancel cancel,
                  std::vector<std::string>& owners);

}  // namespace dlock::cli
