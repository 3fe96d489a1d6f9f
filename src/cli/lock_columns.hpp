// The one table of what can be shown of a lock: `list`, `show`, --output, JSON and the man page all
// come from it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/columns.hpp"
#include "core/backend.hpp"
#include "core/settings.hpp"

namespace dlock::cli {

/// What a row is about: a lock and one of its holders or waiters, if it has any.
struct LockRow {
  const LockInfo* lock = nullptr;
  const LockInfo::Holder* holder = nullptr;
  const LockInfo::Waiter* waiter = nullptr;
};

/// Which objects of the JSON have it, one bit each.
enum Part : unsigned { kOfLock = 1, kOfHolder = 2, kOfWaiter = 4 };

struct LockColumn {
  unsigned parts;
  Column<LockRow> column;
};

std::span<const LockColumn> lock_columns();

/// "key, mode, ..." : those that --output takes.
std::string all_column_names();

/// The columns that the setting (--output) names, separated by commas.
Columns<LockRow> chosen_columns(const Setting& setting);

/// A row for each holder, in the order of their slots; of a lock that is only waited for, one
/// without.
std::vector<LockRow> holder_rows(const LockInfo& lock);
std::vector<LockRow> waiter_rows(const LockInfo& lock);

/// What `list` prints if nothing else is asked for: what tells nothing in any of these rows is left
/// out.  On a terminal, hosts go to their first dot and commands are without their directory; if
/// not all fits into `width`, a label stands in place of the command.
Columns<LockRow> list_columns(std::span<const LockRow> rows, std::size_t width);

/// One element of "locks" in the JSON; only of `chosen`, unless that is empty.
Object lock_object(const LockInfo& lock, const Columns<LockRow>& chosen);

/// As people are shown the id of a grant: whoever has a whole one can release it.
std::string short_id(const Owner& owner);

}  // namespace dlock::cli
