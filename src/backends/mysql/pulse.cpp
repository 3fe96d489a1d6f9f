#include "backends/mysql/pulse.hpp"

#include <optional>
#include <utility>

#include "backends/mysql/clauses.hpp"
#include "backends/mysql/sql.hpp"
#include "core/lock_record.hpp"

namespace dlock::mysql {
namespace {

// None: nobody can tell, or it has no end.
std::optional<Millis> lease_of(const Party& party) {
  if (party.kind == Kind::waiter) return kWaiterLease;
  if (!party.left) return std::nullopt;
  const auto record = parse_lock_record(party.record);
  return record ? record->ttl : std::nullopt;
}

}  // namespace

void Pulse::see(const std::vector<Party>& parties, Deadline now) {
  std::map<std::uint64_t, Seen> seen;
  for (const Party& party : parties) {
    const auto lease = lease_of(party);
    if (!lease) continue;
    const auto before = seen_.find(party.id);
    seen.emplace(party.id, before != seen_.end() && before->second.expires_at == party.expires_at
                               ? before->second
                               : Seen{party.expires_at, after(now, *lease)});
  }
  seen_ = std::move(seen);
}

std::string Pulse::is_over(Deadline now, bool tries_once) const {
  const std::string skew = std::to_string(kMostSkew.count() / 1'000);
  std::string condition =
      "(expires_at <= " + std::string(kNow) + " - INTERVAL " +
      (tries_once ? "IF(" + kind_is(Kind::waiter) + ", 0, " + skew + ")" : skew) + " SECOND";
  for (const auto& [id, seen] : seen_) {
    if (now < seen.until) continue;
    const std::string same = seen.expires_at.empty()
                                 ? "IS NULL"
                                 : "= CAST(" + literal(seen.expires_at) + " AS DATETIME(6))";
    condition += " OR (id = " + std::to_string(id) + " AND expires_at " + same + ")";
  }
  return condition + ')';
}

Marks marks_on(const Connection& connection, const Pulse& pulse, bool tries_once) {
  if (!connection.on_cluster()) return {};
  return Marks::of_cluster(pulse.is_over(Clock::now(), tries_once));
}

}  // namespace dlock::mysql
