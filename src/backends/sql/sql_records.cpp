// Version.  The text itself: it is in the WHERE of each change.  So a process that is stopped
//           between reading and writing holds no lock, and keeps nobody waiting.
// Reading.  A single SELECT sees all that was committed before it.  Where there is no table, there
//           are no marks.
// Sample.   16 rows are looked at, in the order of the primary key, from our own key on, and 16
//           from random_beginning() on.
#include "backends/sql/sql_records.hpp"

#include <utility>

#include "backends/sql/statements.hpp"
#include "core/key.hpp"
#include "core/mark.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::sql {
namespace {

class SqlRecords final : public Records {
 public:
  explicit SqlRecords(Conversation& conversation)
      : conversation_(conversation), database_(*conversation.database()) {}

  std::string shown(const RecordName& name) const override {
    return database_.shown() + ": the row of " + database_.fill("{records}", {}) +
           " with the name " + util::in_quotes(name.key) +
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
  Values values_of(const RecordName& name) const;
  Result<RecordLook> marks_in(const std::string& text, Deadline deadline) const;
  Result<std::size_t> count_done(const Result<Reply>& reply) const;

  Conversation& conversation_;
  const Database& database_;
};

Values SqlRecords::values_of(const RecordName& name) const {
  return {{"of", database_.fill(name.kind == RecordKind::mark ? "{method}" : "{all_methods}", {})},
          {"name", database_.literal(name.key)},
          {"period", database_.literal(name.period)}};
}

RecordLook look_of(RecordKind kind, const Reply& reply) {
  RecordLook out;
  for (const Answer& answer : reply.answers) {
    for (const Row& row : answer.rows) {
      if (row.size() != 5) continue;
      out.now = signed_number(row, 0);
      if (!row[1] || !row[2] || !row[4]) continue;
      RecordName name{kind, *row[1], *row[2]};
      const bool fits = check_key(name.key).has_value() && name.period.size() <= kMaxPeriodLength;
      if (kind == RecordKind::mark && !fits) continue;
      out.records.push_back({std::move(name), *row[4], *row[4], signed_number(row, 3)});
    }
  }
  return out;
}

Result<RecordLook> SqlRecords::marks_in(const std::string& text, Deadline deadline) const {
  const auto reply = conversation_.ask(text, deadline);
  if (!reply) return reply.error();
  return reply.value().ok() ? look_of(RecordKind::mark, reply.value()) : RecordLook{};
}

Result<RecordLook> SqlRecords::read(const RecordName& name, Deadline deadline) {
  const std::string text = database_.fill(database_.texts().record_read, values_of(name));
  if (name.kind == RecordKind::mark) return marks_in(text, deadline);
  const auto reply = conversation_.ask_with_tables(text, deadline);
  if (!reply) return reply.error();
  return look_of(name.kind, reply.value());
}

Result<RecordLook> SqlRecords::list(std::string_view prefix, Deadline deadline) {
  return marks_in(
      database_.fill(database_.texts().record_list, {{"of", database_.fill("{method}", {})},
                                                     {"length", std::to_string(prefix.size())},
                                                     {"prefix", database_.literal(prefix)}}),
      deadline);
}

// Each change has an answer that says whether it was done.
Result<std::size_t> SqlRecords::count_done(const Result<Reply>& reply) const {
  if (!reply) return reply.error();
  std::size_t done = 0;
  for (const Answer& answer : reply.value().answers) {
    const Row& row = first_row(answer);
    if (row.size() != 2) continue;
    if (!is_true(row, 1)) {
      return no_primary(database_.shown());
    }
    done += number(row, 0);
  }
  return done;
}

Result<bool> SqlRecords::write(const RecordName& name, const std::string& version,
                               const std::string& text, Deadline deadline) {
  const bool is_new = version.empty();
  if (is_new) {
    if (auto ok = conversation_.check_records(deadline); !ok) return ok.error();
  }
  Values values = values_of(name);
  values.emplace_back("text", database_.literal(text));
  values.emplace_back("version", database_.literal(version));
  const Texts& texts = database_.texts();
  const auto done = count_done(conversation_.ask_with_tables(
      database_.fill(is_new ? texts.record_insert : texts.record_update, values), deadline));
  if (!done) return done.error();
  return done.value() == 1;
}

Result<std::size_t> SqlRecords::remove(std::span<const StoredRecord> seen, Deadline deadline) {
  std::string text;
  for (const StoredRecord& record : seen) {
    Values values = values_of(record.name);
    values.emplace_back("version", database_.literal(record.version));
    text += database_.fill(database_.texts().record_delete, values);
  }
  if (text.empty()) return std::size_t{0};
  return count_done(conversation_.ask(text, deadline));
}

Result<void> SqlRecords::prepare(std::string_view key, Deadline deadline) {
  const auto reply = conversation_.ask_with_tables(
      database_.fill(database_.texts().record_try,
                     values_of({RecordKind::mark, std::string(key), ""})),
      deadline);
  if (!reply) return reply.error();
  const std::string risk = text(first_row(last_answer(reply.value())), 0);
  if (!risk.empty() && !database_.has_copies()) {
    util::log(util::Level::warning,
              database_.shown() +
                  ": what is done may be forgotten if this server crashes in the second after that "
                  "(" +
                  risk + ')');
  }
  return conversation_.check_records(deadline);
}

Result<RecordLook> SqlRecords::sample(std::string_view key, Deadline deadline) {
  std::string text;
  for (const std::string_view from : {key, random_beginning(key)}) {
    text += database_.fill(database_.texts().record_sample, {{"of", database_.fill("{method}", {})},
                                                             {"from", database_.literal(from)}});
  }
  return marks_in(text, deadline);
}

}  // namespace

std::unique_ptr<Records> make_records(Conversation& conversation) {
  return std::make_unique<SqlRecords>(conversation);
}

}  // namespace dlock::sql
