// The table of everything that can be shown of a lock. `list`, --output and the JSON use it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/columns.hpp"
#include "core/backend.hpp"
#include "core/settings.hpp"

namespace dlock::cli {

/// A row shows a lock and one of its holders or waiters, if it has any.
struct LockRow {
  const LockInfo* lock = nullptr;
  const LockInfo::Holder* holder = nullptr;
  const LockInfo::Waiter* waiter = nullptr;
};

/// The columns that --output accepts: key, mode, ...
std::vector<std::string_view> column_names();
std::string all_column_names();  // with commas between them

/// The columns that the setting (--output) names, separated by commas.  Refuses an unknown one.
Columns<LockRow> chosen_columns(const Setting& setting);

/// One row for each holder, in the order of their slots.  A lock that has waiters only has one row
/// without a holder.
std::vector<LockRow> holder_rows(const LockInfo& lock);
std::vector<LockRow> waiter_rows(const LockInfo& lock);

/// The columns that `list` prints without --output.  A column is omitted if it has the usual value
/// in every row.  On a terminal, hosts end at their first dot, and commands have no directory.  If
/// not everything fits into `width`, the label replaces the command.
Columns<LockRow> list_columns(std::span<const LockRow> rows, std::size_t width);

/// One element of "locks" in the JSON. If `chosen` is not empty, it has only these fields.
Object lock_object(const LockInfo& lock, const Columns<LockRow>& chosen);

/// The holder or waiter of the row, as an element of "holders" or "waiters".
Object party_object(const LockRow& row, const Columns<LockRow>& chosen);

/// The beginning of the lock id, for output.  The whole lock id is enough to release the lock, so
/// it is never shown.
std::string short_id(const Owner& owner);

}  // namespace dlock::cli
