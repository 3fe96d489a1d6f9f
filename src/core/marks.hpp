// Finding and forgetting what `dlock once` remembers.  It is written by Lease::complete(), in the
// same step as the release.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/mark.hpp"
#include "core/records.hpp"

namespace dlock {

/// The record of a mark.  Its text is format_mark(), and its time begins when it is written.
RecordName record_of(const MarkName& name);

// See Backend.
Result<std::optional<Mark>> find_mark(Records& records, const MarkName& name, Deadline deadline);
/// Deletes some of the marks whose time is over, too.
Result<void> prepare_marks(Records& records, std::string_view key, Deadline deadline);
Result<std::vector<Mark>> list_marks(Records& records, std::string_view prefix, Deadline deadline);
Result<bool> forget_mark(Records& records, const MarkName& name, Deadline deadline);

}  // namespace dlock
