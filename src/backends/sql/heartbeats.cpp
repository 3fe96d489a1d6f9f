#include "backends/sql/heartbeats.hpp"

#include "core/lock_record.hpp"

namespace dlock::sql {

void Heartbeats::judge(std::vector<LockRow>& rows, Deadline now, bool tries_once) {
  std::map<std::string, Seen> seen;
  for (LockRow& row : rows) {
    row.has_session = false;
    if (!row.left) continue;
    const bool is_waiter = row.role == LockRow::Role::waiter;
    const auto record = parse_lock_record(row.record);
    const Millis ttl = is_waiter ? kWaiterLease : record && record->ttl ? *record->ttl : kMostSkew;
    const auto before = seen_.find(row.owner);
    const Seen& known =
        seen.emplace(row.owner, before != seen_.end() && before->second.expires_at == row.expires_at
                                    ? before->second
                                    : Seen{row.expires_at, after(now, ttl)})
            .first->second;
    const Millis skew = is_waiter && tries_once ? Millis{0} : kMostSkew;
    const bool is_over = now >= known.until || *row.left + skew <= Millis{0};
    row.has_session = !is_over;
    if (is_over) row.left = Millis{0};
  }
  seen_ = std::move(seen);
}

}  // namespace dlock::sql
