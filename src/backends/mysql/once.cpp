// Writing.  One transaction deletes the row of the holder, if it is ours and our lease is not over,
//           and then writes the mark.  Of one lease this can be committed once only, and never
//           after it was lost: a text that comes late finds no row of ours.  So a mark never
//           replaces that of a later grant.
//           Somebody else may have the table or the mark locked.  That is waited for before the row
//           of the holder is locked, so that nobody else has to wait for it.
// Doubt.    Whether our own mark is there says what has become of a complete() whose reply was
//           lost.  Its session is ended first.  A COMMIT that is under way even so has the row of
//           the holder locked: the next complete() waits for that row, and sees what was written.
//           On a cluster nobody can end it: of two transactions that delete the row, the cluster
//           refuses one at its COMMIT.
// Errors.   One error undoes its statement, and another one the whole transaction: the rest is
//           undone, and all begins anew.
// Reading.  Under the lock, over the connection that holds it: another one may lead to a server
//           that was demoted.  A single SELECT sees all that was committed before it: at READ
//           COMMITTED, and on a cluster by wsrep_sync_wait (see connection.cpp).
// Sweeping. A job that is about to run deletes marks whose time is over.  There is no index on the
//           time, for the reason in forget_unused.cpp.  16 rows are looked at, in the order of the
//           primary key, from our own key on and from a random part of its beginning on: names
//           that are used once often begin alike.  Locked rows are skipped.
#include "backends/mysql/once.hpp"

#include <algorithm>

#include "backends/mysql/clauses.hpp"
#include "backends/mysql/sql.hpp"
#include "backends/mysql/statements.hpp"
#include "core/key.hpp"
#include "util/log.hpp"

namespace dlock::mysql {
namespace {

// A DATETIME ends with the year 9999.
constexpr Millis kLongestMemory{1'000LL * 365 * 86'400'000};

std::string is_over() { return " expires_at <= " + std::string(kNow); }
std::string is_not_over() { return " expires_at > " + std::string(kNow); }

// None for what dlock did not write.
std::optional<Mark> parse_done(const Row& row) {
  if (row.size() != 7) return std::nullopt;
  const auto text = [&](std::size_t column) { return row[column].value_or(""); };
  auto record = parse_mark(text(6));
  if (!record || !check_key(text(0)) || text(1).size() > kMaxPeriodLength) return std::nullopt;
  Mark mark{.name = {text(0), text(1)},
            .owner = std::move(record->owner),
            .fence = number(row, 3),
            .done_at = std::move(record->done_at),
            .age = std::max(Millis{signed_number(row, 4) / 1'000}, Millis{0}),
            .left = Millis{(signed_number(row, 5) + 999) / 1'000}};
  mark.owner.id = text(2);
  return mark;
}

// Where there is no table, or none for this user, nothing is remembered.
Result<std::vector<Mark>> marks_found(const Say& say, const Place& place, const std::string& text) {
  std::vector<Mark> marks;
  const auto reply = say(text);
  if (!reply) {
    if (reply.error().code != Errc::denied) return reply.error();
    const auto seen = sees(say, done_table(place.prefix));
    if (!seen || seen.value()) return reply.error();
    return marks;
  }
  if (!reply.value().ok()) return marks;
  for (const Row& row : reply.value().answers.back().rows) {
    if (auto mark = parse_done(row)) marks.push_back(std::move(*mark));
  }
  return marks;
}

}  // namespace

std::string Statements::is_done(std::string_view period) const {
  return of_key() + " AND period = " + literal(period);
}

// Ends with "; ".
std::string Statements::remember(const Owner& owner, std::uint64_t fence,
                                 const Completion& completion, std::string_view condition) const {
  return "REPLACE INTO " + tables_.done +
         " (method, name, period, owner, fence, since, expires_at, record) SELECT " + method_text_ +
         ", " + key_ + ", " + literal(completion.period) + ", " + literal(owner.id) + ", " +
         std::to_string(fence) + ", " + std::string(kNow) + ", " +
         from_now(std::min(completion.remember, kLongestMemory)) + ", " +
         literal(format_mark(owner, fence, completion.remember)) + " FROM DUAL WHERE " +
         std::string(condition) + "; ";
}

// No ROW_COUNT() here: if the client is gone, and the server cannot send what a statement has done,
// MariaDB (10.11) goes on with the next one, in which ROW_COUNT() is -1.
std::string Statements::complete(std::uint64_t id, const Owner& owner, std::uint64_t fence,
                                 const Completion& completion) const {
  return note_writable() + "START TRANSACTION; SELECT owner FROM " + tables_.done + " WHERE " +
         is_done(completion.period) +
         " FOR UPDATE; SET @dlock_ours = NULL; SELECT id INTO @dlock_ours FROM " + tables_.locks +
         " WHERE " + is_our_holder(id, owner.id) + " AND @dlock_writable FOR UPDATE; DELETE FROM " +
         tables_.locks + " WHERE id = @dlock_ours; " +
         remember(owner, fence, completion, "@dlock_ours IS NOT NULL") +
         is_done_by(completion.period, owner.id) + "; " + confirm(id, owner.id) + "; COMMIT; " +
         is_writable_still() + "; " + release_marks(owner.id);
}

// Behind these comes a DO, and before the third, a COMMIT.
Written completed(const std::vector<Answer>& answers) {
  const std::size_t end = answers.size();
  return {number_in(answers.at(end - 2)) == 1, number_in(answers.at(end - 5)) == 1,
          answers.at(end - 4)};
}

std::string Statements::is_done_by(std::string_view period, std::string_view owner) const {
  return "SELECT COUNT(*) FROM " + tables_.done + " WHERE " + is_done(period) +
         " AND owner = " + literal(owner);
}

std::string Statements::probe_done() const { return remember({}, 0, {"", Millis{1}}, "FALSE"); }

std::string Statements::done_columns() const {
  return "SELECT name, period, owner, fence, TIMESTAMPDIFF(MICROSECOND, since, " +
         std::string(kNow) + "), TIMESTAMPDIFF(MICROSECOND, " + std::string(kNow) +
         ", expires_at), LEFT(record, " + std::to_string(kLongestMark + 1) + ") FROM " +
         tables_.done + " WHERE" + is_not_over() + " AND ";
}

std::string Statements::find_done(std::string_view period) const {
  return done_columns() + is_done(period);
}

std::string Statements::list_done(std::string_view prefix) const {
  return done_columns() + "method = " + method_text_ + " AND LEFT(name, " +
         std::to_string(prefix.size()) + ") = " + literal(prefix) + " ORDER BY name, period";
}

std::string Statements::forget_done(std::string_view period) const {
  return "DELETE FROM " + tables_.done + " WHERE " + is_done(period) + " AND" + is_not_over();
}

// The last of 16 is found by a plain SELECT, which waits for no lock.
std::string Statements::forget_over() const {
  const auto window = [&](const std::string& from) {
    const std::string rows =
        " FROM " + tables_.done + " WHERE method = " + method_text_ + " AND name >= @dlock_from";
    return "SET @dlock_from = " + from +
           ", @dlock_name = NULL; SELECT name, period INTO @dlock_name, @dlock_period" + rows +
           " ORDER BY method, name, period LIMIT 15, 1; DELETE mark FROM (SELECT method, name, "
           "period" +
           rows +
           " AND (@dlock_name IS NULL OR name < @dlock_name OR (name = @dlock_name AND period <= "
           "@dlock_period)) AND" +
           is_over() + " LIMIT 16 FOR UPDATE SKIP LOCKED) AS past STRAIGHT_JOIN " + tables_.done +
           " AS mark ON mark.method = past.method AND mark.name = past.name AND mark.period = "
           "past.period; ";
  };
  return window(key_) + window("LEFT(" + key_ + ", FLOOR(RAND() * LENGTH(" + key_ + ")))") + "DO 0";
}

Result<std::optional<Mark>> find_mark(const Say& say, const Place& place, Method method,
                                      const MarkName& name) {
  auto found =
      marks_found(say, place, Statements(method, place.prefix, name.key).find_done(name.period));
  if (!found) return found.error();
  if (found->empty()) return std::optional<Mark>();
  return std::optional(std::move(found->front()));
}

Result<std::vector<Mark>> list_marks(const Say& say, const Place& place, Method method,
                                     std::string_view prefix) {
  return marks_found(say, place, Statements(method, place.prefix, "").list_done(prefix));
}

// On a cluster, what one server has lost is known to the others.
Result<void> prepare_marks(const Say& say, const Place& place, Method method,
                           std::string_view key) {
  const auto flushes = say_with_table(say, place, done_table(place.prefix),
                                      Statements(method, place.prefix, key).probe_done() +
                                          "SELECT @@GLOBAL.innodb_flush_log_at_trx_commit");
  if (!flushes) return flushes.error();
  if (number_in(flushes.value()) == 0 && *place.cluster == Place::Cluster::no) {
    util::log(util::Level::warning,
              place.shown +
                  ": what is done may be forgotten if this server crashes in the second after that "
                  "(innodb_flush_log_at_trx_commit=0)");
  }
  return {};
}

Result<bool> forget_mark(const Say& say, const Place& place, Method method, const MarkName& name) {
  const auto reply = say(Statements(method, place.prefix, name.key).forget_done(name.period));
  if (!reply) return reply.error();
  return reply.value().ok() && reply.value().answers.back().affected == 1;
}

}  // namespace dlock::mysql
