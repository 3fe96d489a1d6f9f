// Records in files of their own, which outlive a boot.
#pragma once

#include <memory>
#include <string>

#include "backends/file/lock_dir.hpp"
#include "core/records.hpp"

namespace dlock::file {

/// `locks` is the present directory of the locks, and must outlive the returned object.
std::unique_ptr<Records> make_records(const std::shared_ptr<const LockDir>& locks);

/// Writes the record, whatever is stored under its name.
Result<void> put_record(const LockDir& locks, const RecordName& name, const std::string& text,
                        Deadline deadline);

}  // namespace dlock::file
