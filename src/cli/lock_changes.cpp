#include "cli/lock_changes.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string>

namespace dlock::cli {
namespace {

// The same in each look, and but for the letter of a waiter and the holder that it becomes.  A
// program other than dlock has no lock id.
std::string name_of(const LockRow& row, bool is_waiter) {
  const Owner owner = row.waiter != nullptr   ? row.waiter->owner
                      : row.holder != nullptr ? row.holder->owner
                                              : Owner();
  return row.lock->key + '\0' + (is_waiter ? 'w' : 'h') +
         (owner.id.empty() ? owner.host + ' ' + std::to_string(owner.pid)
                           : std::string(without_number(owner.id)));
}
std::string name_of(const LockRow& row) { return name_of(row, row.waiter != nullptr); }

struct Look {
  explicit Look(std::span<const LockInfo> locks) {
    for (const LockInfo& lock : locks) {
      for (const LockRow& row : holder_rows(lock)) rows.push_back(row);
      for (const LockRow& row : waiter_rows(lock)) rows.push_back(row);
    }
    for (const LockRow& row : rows) names.insert(name_of(row));
  }
  std::vector<LockRow> rows;
  std::set<std::string> names;
};

}  // namespace

std::vector<ChangedRow> compare(std::span<const LockInfo> before, std::span<const LockInfo> now) {
  const Look old(before);
  const Look current(now);
  std::vector<ChangedRow> out;
  for (const LockRow& row : old.rows) {
    const bool holds = current.names.contains(name_of(row, false));
    if (!holds && !current.names.contains(name_of(row))) out.push_back({row, Change::gone});
  }
  for (const LockRow& row : current.rows) {
    out.push_back({row, old.names.contains(name_of(row)) ? Change::none : Change::came});
  }
  std::ranges::stable_sort(out, {}, [](const ChangedRow& it) { return it.row.lock->key; });
  return out;
}

std::size_t keep_longest_held(std::vector<ChangedRow>& rows, std::size_t most) {
  if (rows.size() <= most) return 0;
  std::ranges::stable_sort(rows, std::greater(), [](const ChangedRow& it) {
    return it.row.holder != nullptr ? it.row.holder->held : std::nullopt;
  });
  const std::size_t others = rows.size() - most;
  rows.resize(most);
  return others;
}

Millis interval_for(Millis wanted, Millis took) {
  return std::max<Millis>(wanted, std::chrono::ceil<std::chrono::seconds>(took * 20));
}

}  // namespace dlock::cli
