// What several servers say of the locks, as one: pure reasoning.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.hpp"

namespace dlock::redis {

/// One lock.  `looks`: what each server said of it; `servers`: how they are shown, in that order.
///
/// A holder is whoever may have a majority.  Whoever certainly has not, as after a try that failed,
/// is only in the remarks, which have a line for each server that tells otherwise or nothing.
///
/// If fewer than a majority answered: as too_few(), with each one's reason.
Result<LockInfo> merge_looks(std::string_view key, std::span<const Result<LockInfo>> looks,
                             std::span<const std::string> servers);

/// The same for all locks, sorted by key.  Only those with holders or waiters.
Result<std::vector<LockInfo>> merge_lists(std::span<const Result<std::vector<LockInfo>>> lists,
                                          std::span<const std::string> servers);

}  // namespace dlock::redis
