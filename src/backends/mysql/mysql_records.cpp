// Version.  The text itself: it is in the WHERE of what changes or deletes a record.  So a process
//           that is stopped between reading and writing holds no lock, and keeps nobody waiting.
//           On a cluster, a COMMIT that collides with another is refused, and said again.
// Reading.  A single SELECT sees all that was committed before it: at READ COMMITTED, and on a
//           cluster by wsrep_sync_wait (see connection.cpp).  Where there is no table, or none for
//           this user, there are no marks.
// Sample.   There is no index on the time, for the reason in forget_unused.cpp.  16 rows are looked
//           at, in the order of the primary key, from our own key on, and 16 from a random part of
//           its beginning on: names that are used once often begin alike.  Locked rows are skipped.
#include "backends/mysql/mysql_records.hpp"

#include <algorithm>
#include <utility>

#include "backends/mysql/clauses.hpp"
#include "backends/mysql/sql.hpp"
#include "core/key.hpp"
#include "core/mark.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::mysql {
namespace {

class MysqlRecords final : public Records {
 public:
  MysqlRecords(SayBy say, const Place& place, Method method, std::function<bool()> skips_locked)
      : say_(std::move(say)),
        place_(place),
        table_(records_table(place.prefix)),
        method_(std::to_string(static_cast<int>(method))),
        skips_locked_(std::move(skips_locked)) {}

  std::string shown(const RecordName& name) const override {
    return place_.shown + ": the row of " + table_.name + " with the name " +
           util::in_quotes(name.key) +
           (name.period.empty() ? "" : " and the period " + util::in_quotes(name.period));
  }
  Result<RecordLook> read(const RecordName& name, Deadline deadline) override;
  Result<RecordLook> list(std::string_view prefix, Deadline deadline) override;
  Result<bool> write(const RecordName& name, const std::string& version, const std::string& text,
                     Deadline deadline) override;
  Result<std::size_t> remove(std::span<const StoredRecord> seen, Deadline deadline) override;
  Result<void> prepare(std::string_view key, Deadline deadline) override;
  Result<RecordLook> sample(std::string_view key, Deadline deadline) override;

 private:
  std::string method_of(RecordKind kind) const {
    return kind == RecordKind::mark ? method_ : kNumbers;
  }
  std::string is(const RecordName& name) const {
    return is_record(method_of(name.kind), literal(name.key), name.period);
  }
  Result<Answer> say_with_table(const std::string& text, Deadline deadline) const {
    const Say say = [&](const std::string& said) { return say_(said, deadline); };
    return mysql::say_with_table(say, place_, table_, text);
  }
  // None of the rows if there is no table.
  Result<std::vector<Row>> marks_in(const std::string& text, Deadline deadline) const;
  RecordLook look_of(RecordKind kind, const std::vector<Row>& rows) const;

  const SayBy say_;
  const Place& place_;
  const ExtraTable table_;
  const std::string method_;
  const std::function<bool()> skips_locked_;
};

// The time of the server, name, period, when it was written, and the text.
const std::string kSelect =
    "SELECT " + std::string(kNowMs) +
    ", name, period, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', written_at) DIV 1000, LEFT(record, " +
    std::to_string(kLongestRecord + 1) + ") FROM ";

RecordLook MysqlRecords::look_of(RecordKind kind, const std::vector<Row>& rows) const {
  RecordLook out;
  for (const Row& row : rows) {
    if (row.size() != 5) continue;
    out.now = signed_number(row, 0);
    if (!row[1] || !row[2] || !row[4]) continue;
    RecordName name{kind, *row[1], *row[2]};
    const bool fits = check_key(name.key).has_value() && name.period.size() <= kMaxPeriodLength;
    if (kind == RecordKind::mark && !fits) continue;
    out.records.push_back({std::move(name), *row[4], *row[4], signed_number(row, 3)});
  }
  return out;
}

Result<std::vector<Row>> MysqlRecords::marks_in(const std::string& text, Deadline deadline) const {
  const auto reply = say_(text, deadline);
  if (!reply) {
    if (reply.error().code != Errc::denied) return reply.error();
    const auto seen = sees([&](const std::string& said) { return say_(said, deadline); }, table_);
    return seen && !seen.value() ? std::vector<Row>() : Result<std::vector<Row>>(reply.error());
  }
  std::vector<Row> rows;
  if (!reply.value().ok()) return rows;
  for (const Answer& answer : reply.value().answers) {
    rows.insert(rows.end(), answer.rows.begin(), answer.rows.end());
  }
  return rows;
}

Result<RecordLook> MysqlRecords::read(const RecordName& name, Deadline deadline) {
  const std::string text =
      kSelect + "(SELECT 1) AS one LEFT JOIN " + table_.name + " ON " + is(name);
  if (name.kind == RecordKind::mark) {
    const auto rows = marks_in(text, deadline);
    return rows ? Result<RecordLook>(look_of(name.kind, rows.value())) : rows.error();
  }
  const auto answer = say_with_table(text, deadline);
  return answer ? Result<RecordLook>(look_of(name.kind, answer.value().rows)) : answer.error();
}

Result<RecordLook> MysqlRecords::list(std::string_view prefix, Deadline deadline) {
  const auto rows =
      marks_in(kSelect + table_.name + " WHERE method = " + method_ + " AND LEFT(name, " +
                   std::to_string(prefix.size()) + ") = " + literal(prefix),
               deadline);
  return rows ? Result<RecordLook>(look_of(RecordKind::mark, rows.value())) : rows.error();
}

Result<bool> MysqlRecords::write(const RecordName& name, const std::string& version,
                                 const std::string& text, Deadline deadline) {
  const std::string method = method_of(name.kind);
  const auto written = say_with_table(
      version.empty() ? add_record("INSERT IGNORE", table_.name, method, literal(name.key),
                                   name.period, text, "@dlock_fit = 1")
                      : "UPDATE " + table_.name + " SET written_at = " + std::string(kNow) +
                            ", record = " + literal(text) + " WHERE " + is(name) +
                            " AND record = " + literal(version) + " AND @dlock_fit = 1",
      deadline);
  return written ? Result<bool>(written.value().affected == 1) : written.error();
}

Result<std::size_t> MysqlRecords::remove(std::span<const StoredRecord> seen, Deadline deadline) {
  std::string any;
  for (const StoredRecord& record : seen) {
    any += (any.empty() ? "(" : " OR (") + is(record.name) +
           " AND record = " + literal(record.version) + ')';
  }
  const auto reply = say_("DELETE FROM " + table_.name + " WHERE " + any, deadline);
  if (!reply) return reply.error();
  return reply.value().ok() ? reply.value().answers.back().affected : 0;
}

// On a cluster, what one server has lost is known to the others.
Result<void> MysqlRecords::prepare(std::string_view key, Deadline deadline) {
  const auto flushes =
      say_with_table(add_record("REPLACE", table_.name, method_, literal(key), "", "", "FALSE") +
                         "; SELECT @@GLOBAL.innodb_flush_log_at_trx_commit",
                     deadline);
  if (!flushes) return flushes.error();
  if (number_in(flushes.value()) == 0 && *place_.cluster == Place::Cluster::no) {
    util::log(util::Level::warning,
              place_.shown +
                  ": what is done may be forgotten if this server crashes in the second after that "
                  "(innodb_flush_log_at_trx_commit=0)");
  }
  return {};
}

Result<RecordLook> MysqlRecords::sample(std::string_view key, Deadline deadline) {
  if (!skips_locked_()) return RecordLook{};
  const std::string own = literal(key);
  std::string text;
  for (const std::string& from : {own, "LEFT(" + own + ", FLOOR(RAND() * LENGTH(" + own + ")))"}) {
    text += (text.empty() ? "" : "; ") + ("SET @dlock_from = " + from + "; ") + kSelect +
            table_.name + " WHERE method = " + method_ +
            " AND name >= @dlock_from ORDER BY method, name, period LIMIT 16 FOR UPDATE SKIP "
            "LOCKED";
  }
  const auto rows = marks_in(text, deadline);
  if (!rows) return rows.error();
  return look_of(RecordKind::mark, rows.value());
}

}  // namespace

std::unique_ptr<Records> make_records(SayBy say, const Place& place, Method method,
                                      std::function<bool()> skips_locked) {
  return std::make_unique<MysqlRecords>(std::move(say), place, method, std::move(skips_locked));
}

}  // namespace dlock::mysql
