#include "backends/sql/examination.hpp"

#include "util/text.hpp"

namespace dlock::sql {

Result<void> ServerFacts::measure(Session& session, const std::string& now_ms, Deadline deadline,
                                  Cancel cancel) {
  return round_trips.measure(deadline, [&]() -> Result<void> {
    const Deadline start = Clock::now();
    const Reply now = session.ask("SELECT " + now_ms, deadline, cancel);
    if (!now.ok()) return *now.error;
    const Clock::duration took = Clock::now() - start;
    if (!round_trips.is_fastest(took)) return {};
    const auto its = static_cast<std::int64_t>(number_in(last_answer(now)) - util::utc_now_ms());
    ahead = Millis{its} + std::chrono::duration_cast<Millis>(took / 2);
    return {};
  });
}

void ServerFacts::tell(const Reply& reply) {
  for (const Answer& answer : reply.answers) {
    for (const Row& row : answer.rows) {
      if (row.size() == 2) told.add(row[0].value_or(""), row[1].value_or(""));
    }
  }
}

void ServerFacts::add_missing(const std::string& table, bool is_of_locks) {
  missing += (missing.empty() ? "" : ", ") + table;
  if (is_of_locks) has_locks = false;
}

long long ServerFacts::number(const std::string& name) const {
  return util::parse_int(told(name), -1, INT64_MAX).value_or(0);
}

Seen seen_tables(const ServerFacts& facts, const std::string& schema, const std::string& grants) {
  if (facts.unfit) return {cannot_look("", facts.server, *facts.unfit).seen, Severity::fail};
  if (!facts.missing.empty() && facts.may_create) {
    return {"missing: " + facts.missing, Severity::note, schema};
  }
  // Some servers do not tell a table that is missing from one to which the user has no right.
  if (!facts.missing.empty()) {
    return {"missing, or not open to this user: " + facts.missing,
            facts.has_locks ? Severity::warn : Severity::fail, schema + "; " + grants};
  }
  if (facts.lacks.empty()) return {"as dlock makes them"};
  return {facts.lacks, facts.lacking, grants};
}

}  // namespace dlock::sql
