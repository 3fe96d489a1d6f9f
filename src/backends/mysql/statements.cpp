// Grants.   The grants of a key follow one another.  The row of the key has a version, which counts
//           them; it is the fencing token.  mysql locks that row first, in the same text that
//           grants, so that no client waits for a client.  mysql-version reads the version, checks
//           that the lock is free, and raises the version only if nobody else has raised it
//           meanwhile.  mysql-row is mysql, and a row lock besides: see row_lease.cpp.
//           The version is at least the milliseconds since 1970, so it grows even if the row was
//           deleted or is missing in a backup.
//           After the COMMIT of a text, only the connection can fail.  Otherwise the text would be
//           repeated, and would find its own grant in its way.
// Expiry.   Expired rows are deleted before the text checks for a holder.  It waits for a renewal
//           that is under way; a later renewal finds no row.  All times are by the server's clock.
//           If that clock is set forward by more than a ttl, leases expire early.  So the session
//           of a holder keeps others out, too, which its mark tells.  The server ends a session
//           that was silent for a ttl by a clock that cannot be set (wait_timeout).
// Primary.  A server that was demoted goes on to answer, and lets some users write although it is
//           read_only.  So whatever grants, renews, releases or completes has the condition that it
//           is not, and looks again after its COMMIT: that waits for one who is about to make it
//           read_only.
// Slots.    The statement that adds the row of a holder chooses its number.  No other grant of the
//           key is under way, so no two holders get the same.
//           The statement also finds that there are fewer than N holders.  It reads one snapshot,
//           so one of 1..N is free in it.  If another statement chose the number, it could still
//           see N holders, and choose N + 1.  A holder of an earlier dlock has the number 0, which
//           is none: it counts as one of N.
// Sole.     The row of an exclusive holder has sole = 1, and a unique key allows one such row.
// Marks.    A mark is a name that a session has locked with GET_LOCK().  It wakes those that wait
//           for it, and tells that the session is there.  A mark can keep others out.  It lets
//           nobody in.
#include "backends/mysql/statements.hpp"

#include <algorithm>

#include "backends/mysql/clauses.hpp"
#include "backends/mysql/pulse.hpp"
#include "backends/mysql/sql.hpp"
#include "core/lock_record.hpp"

namespace dlock::mysql {
namespace {

// NULL where there is no row of the key.
std::string next_fence() { return "GREATEST(@dlock_version + 1, " + std::string(kNowMs) + ")"; }

// Of a row that is added to the table of locks.
constexpr const char* kColumns =
    " (method, name, kind, sole, slot, owner, mode, slots, fence, since, expires_at, record)";

std::string list_of(const std::vector<std::uint64_t>& numbers) {
  std::string list;
  for (const std::uint64_t id : numbers) list += (list.empty() ? "" : ", ") + std::to_string(id);
  return list;
}

std::string mode_number(Mode mode) { return std::to_string(static_cast<int>(mode)); }

// Seconds after which the server ends a session from which nothing comes: of a holder, and else.
std::string idle_limit(Millis ttl) { return std::to_string((ttl.count() + 999) / 1'000); }
constexpr const char* kIdleLimit = "28800";

}  // namespace

Statements::Statements(Method method, const std::string& prefix, std::string_view key, Marks marks)
    : method_(method),
      tables_(prefix),
      method_text_(std::to_string(static_cast<int>(method))),
      key_(literal(key)),
      marks_(std::move(marks)) {}

std::string Statements::of_key() const {
  return "method = " + method_text_ + " AND name = " + key_;
}

// What keeps others out: a lease that has not expired (without an end, until somebody breaks it),
// or a session that has not ended, which it does when nothing came from it for a ttl.
std::string Statements::lives() const {
  return "(expires_at IS NULL OR NOT " + marks_.is_expired() + " OR " + marks_.of_row(kHolderMark) +
         " IS NOT NULL)";
}

// What the session that says this may still call its own.
std::string Statements::is_ours() const {
  return "(expires_at > " + std::string(kNow) + " OR " + marks_.is_own(kHolderMark) + ")";
}

// Of a session that may come to hold the lock.
std::string Statements::have_both(std::string_view owner) const {
  return marks_.have(session_mark(owner)) + " AND " + marks_.have(holder_mark(owner));
}

std::string Statements::columns(bool records) const {
  return "SELECT id, kind, name, owner, mode, slots, fence, TIMESTAMPDIFF(MICROSECOND, since, " +
         std::string(kNow) + "), " + marks_.time_left() + ", IF(" + kind_is(Kind::waiter) + ", " +
         marks_.of_row(kWaiterMark) + ", " + marks_.of_row(kHolderMark) + "), slot, " +
         (records ? "record" : "IF(" + kind_is(Kind::holder) + ", record, '')") +
         ", expires_at FROM " + tables_.locks;
}

std::string Statements::look(bool records) const {
  return columns(records) + " WHERE " + of_key() + " ORDER BY id";
}

std::string Statements::list(std::string_view prefix) const {
  return columns(true) + " WHERE method = " + method_text_ + " AND LEFT(name, " +
         std::to_string(prefix.size()) + ") = " + literal(prefix) + " ORDER BY name, id";
}

// As State::decide() has it.
std::string Statements::in_way(const Request& request, std::uint64_t own, bool expired_too) const {
  const std::string from = "FROM " + tables_.locks + " WHERE " + of_key() + " AND ";
  std::string holder = kind_is(Kind::holder);
  if (!expired_too) holder += " AND " + lives();
  std::string ahead = kind_is(Kind::waiter);
  if (own != 0) ahead += " AND id < " + std::to_string(own);
  ahead += " AND " + marks_.of_row(kWaiterMark) + " IS NOT NULL";
  if (request.mode == Mode::slots) {
    const std::string slots = std::to_string(request.slots);
    return "(EXISTS (SELECT 1 " + from + holder + " AND (mode <> " + mode_number(Mode::slots) +
           " OR slots <> " + slots + ")) OR (SELECT COUNT(*) " + from + holder +
           ") + (SELECT COUNT(*) " + from + ahead + ") >= " + slots + ")";
  }
  if (request.mode == Mode::shared) {
    const std::string no_reader = " AND mode <> " + mode_number(Mode::shared);
    return "(EXISTS (SELECT 1 " + from + holder + no_reader + ") OR EXISTS (SELECT 1 " + from +
           ahead + no_reader + "))";
  }
  return "(EXISTS (SELECT 1 " + from + holder + ") OR EXISTS (SELECT 1 " + from + ahead + "))";
}

// The lowest number of 1..N that no holder has.  The candidates are 1 and the number after that of
// each holder.  To search for a holder of each candidate takes MariaDB 70 ms with 1,000 holders,
// since it chooses no hash.  To group the candidates takes each server 1 ms.
std::string Statements::lowest_free() const {
  const std::string holders =
      " FROM " + tables_.locks + " WHERE " + of_key() + " AND " + kind_is(Kind::holder);
  return "(SELECT MIN(n) FROM (SELECT n FROM (SELECT 1 AS n, 0 AS taken UNION ALL SELECT slot + 1, "
         "0" +
         holders + " UNION ALL SELECT slot, 1" + holders +
         ") AS candidates GROUP BY n HAVING SUM(taken) = 0) AS untaken)";
}

// `check` sets @dlock_may to 1 if the lock may be granted, and @dlock_fence to the fencing token.
// It does so only if the session has its marks.  A text that is late, of a session that was given
// up, cannot take them.  Who was passed over and does not know it is granted nothing.
std::string Statements::grant(const Request& request, std::uint64_t own, const std::string& check,
                              const std::string& condition, const std::string& slot) const {
  const std::string& owner = request.owner.id;
  const std::string id = std::to_string(own);
  const std::string sole = request.mode == Mode::exclusive ? "1" : "NULL";
  const std::string row =
      " FROM " + tables_.locks + " WHERE id = " + id + " AND " + kind_is(Kind::waiter);
  const std::string in_queue = own == 0 ? "" : " AND EXISTS (SELECT 1" + row + ")";
  return "SET @dlock_marked = " + std::string(kWritable) + " AND " + have_both(owner) +
         ", @dlock_fit = " + fit(tables_) +
         ", @dlock_version = NULL, @dlock_fence = NULL, @dlock_may = 0, @dlock_won = 0; " + check +
         "INSERT INTO " + tables_.locks + kColumns + " SELECT " + method_text_ + ", " + key_ +
         ", " + std::to_string(static_cast<int>(Kind::holder)) + ", " + sole + ", " + slot + ", " +
         literal(owner) + ", " + mode_number(request.mode) + ", " + std::to_string(request.slots) +
         ", @dlock_fence, " + std::string(kNow) + ", " + from_now(request.ttl) + ", " +
         literal(format_lock_record(request)) +
         " FROM DUAL WHERE @dlock_fit AND @dlock_may = 1 AND NOT " + condition + in_queue +
         "; SET @dlock_won = IF(ROW_COUNT() = 1, LAST_INSERT_ID(), 0); DELETE" + row +
         " AND @dlock_won > 0; ";
}

std::string Statements::outcome_of_grant() const {
  return "SELECT @dlock_fit, @dlock_version IS NOT NULL, @dlock_won, @dlock_fence, (SELECT slot "
         "FROM " +
         tables_.locks + " WHERE id = @dlock_won); ";
}

std::string Statements::attempt(const Request& request, std::uint64_t own) const {
  const std::string row = " FROM " + tables_.keys + " WHERE " + of_key();
  const std::string raise =
      "UPDATE " + tables_.keys + " SET version = @dlock_fence WHERE " + of_key() + " AND ";
  const std::string number = "SET @dlock_fence = " + next_fence();
  const std::string clear = "DELETE FROM " + tables_.locks + " WHERE " + of_key() + " AND (" +
                            kind_is(Kind::broken) + " AND expires_at <= " + std::string(kNow) +
                            " OR " + kind_is(Kind::holder) + " AND " + marks_.is_expired() +
                            " AND " + marks_.of_row(kHolderMark) + " IS NULL) AND @dlock_fit AND ";
  std::string check;
  if (method_ == Method::version) {
    check = "SELECT version INTO @dlock_version" + row + "; " + number + "; START TRANSACTION; " +
            raise + "version = @dlock_version AND @dlock_fit AND @dlock_marked AND NOT " +
            in_way(request, own, false) + "; SET @dlock_may = ROW_COUNT(); " + clear +
            "@dlock_may = 1; ";
  } else {
    check = "START TRANSACTION; SELECT version INTO @dlock_version" + row + " FOR UPDATE; " +
            number + ", @dlock_may = @dlock_version IS NOT NULL AND @dlock_marked; " + clear +
            "@dlock_may = 1; ";
  }
  std::string text = grant(request, own, check, in_way(request, own, true),
                           request.mode == Mode::slots ? lowest_free() : "0");
  if (method_ != Method::version) text += raise + "@dlock_won > 0; ";
  return text + "SET SESSION wait_timeout = IF(@dlock_won > 0, " + idle_limit(request.ttl) + ", " +
         kIdleLimit + "); " + outcome_of_grant() + look(false) +
         "; COMMIT; DO IF(@dlock_won > 0, " + marks_.release(waiter_mark(request.owner.id)) +
         ", 0); SELECT " + std::string(kWritable);
}

Outcome outcome(const Answer& answer) {
  if (answer.rows.size() != 1) return {};
  const Row& row = answer.rows.front();
  return {number(row, 0) == 1, number(row, 1) == 1, number(row, 2), number(row, 3),
          static_cast<unsigned>(number(row, 4))};
}

// Between these two and the last come a COMMIT and a DO.
Attempted attempted(const std::vector<Answer>& answers) {
  return {outcome(answers.at(answers.size() - 5)), answers.at(answers.size() - 4),
          number_in(answers.back()) == 1};
}

std::string Statements::create_row() const {
  return "INSERT IGNORE INTO " + tables_.keys + " (method, name, version) VALUES (" + method_text_ +
         ", " + key_ + ", " + std::string(kNowMs) + ")";
}

std::string Statements::join(const Request& request) const {
  return "SET @dlock_marked = " + marks_.have(session_mark(request.owner.id)) + " AND " +
         marks_.have(waiter_mark(request.owner.id)) + "; INSERT INTO " + tables_.locks + kColumns +
         " SELECT " + method_text_ + ", " + key_ + ", " +
         std::to_string(static_cast<int>(Kind::waiter)) + ", NULL, 0, " +
         literal(request.owner.id) + ", " + mode_number(request.mode) + ", " +
         std::to_string(request.slots) + ", 0, " + std::string(kNow) + ", " +
         (marks_.on_cluster() ? from_now(kWaiterLease) : "NULL") + ", " +
         literal(format_lock_record(request)) + " FROM DUAL WHERE @dlock_marked";
}

std::string Statements::beat(std::uint64_t id) const {
  return "UPDATE " + tables_.locks + " SET expires_at = " + from_now(kWaiterLease) +
         " WHERE id = " + std::to_string(id) + " AND " + kind_is(Kind::waiter) + "; ";
}

std::string Statements::forget_late(std::string_view owner, std::uint64_t own) const {
  return leave(owner) + " AND id <> " + std::to_string(own) + "; ";
}

std::string Statements::leave(std::string_view owner) const {
  return "DELETE FROM " + tables_.locks + " WHERE " + of_key() + " AND owner = " + literal(owner);
}

std::string Statements::sweep(const std::vector<std::uint64_t>& ids) const {
  return "DELETE FROM " + tables_.locks + " WHERE id IN (" + list_of(ids) + ") AND " +
         kind_is(Kind::waiter) + " AND " + marks_.of_row(kWaiterMark) + " IS NULL";
}

// A grant locks that row of the key, too: so either it finds that it has been passed over, or it
// has removed its row of the queue before.
std::string Statements::pass_over(std::uint64_t id) const {
  return "START TRANSACTION; SELECT version FROM " + tables_.keys + " WHERE " + of_key() +
         " FOR UPDATE; DELETE FROM " + tables_.locks + " WHERE id = " + std::to_string(id) +
         " AND " + kind_is(Kind::waiter) + "; COMMIT";
}

bool passed_over(const std::vector<Answer>& answers) {
  return answers.size() == 4 && answers[2].affected == 1;
}

// If the lease has expired, GET_LOCK would keep other clients out until the server notices that
// this session has ended.
std::string Statements::resume(std::uint64_t id, std::string_view owner, Millis ttl,
                               Millis wait) const {
  return "SET SESSION wait_timeout = " + idle_limit(ttl) + "; DO " +
         marks_.have(session_mark(owner), wait) + "; SELECT IF(EXISTS (SELECT 1 FROM " +
         tables_.locks + " WHERE id = " + std::to_string(id) + " AND " + kind_is(Kind::holder) +
         " AND expires_at > " + std::string(kNow) + "), " + marks_.have(holder_mark(owner), wait) +
         ", 0)";
}

std::string Statements::note_writable() {
  return "SET @dlock_writable = " + std::string(kWritable) + "; ";
}

std::string Statements::is_writable_still() {
  return "SELECT @dlock_writable AND " + std::string(kWritable);
}

// The end of the lease is another one each time: a row that is set to what it was is not
// "affected".
std::string Statements::change_holder(std::uint64_t id, std::string_view owner,
                                      const std::string& changes) const {
  return note_writable() + "UPDATE " + tables_.locks + " SET " + changes + " WHERE " +
         is_our_holder(id, owner) + " AND @dlock_writable; " + is_writable_still() + "; " +
         confirm(id, owner);
}

Written changed(const std::vector<Answer>& answers) {
  return {number_in(answers.at(2)) == 1, answers.at(1).affected == 1, answers.at(3)};
}

std::string Statements::renew(std::uint64_t id, std::string_view owner, Millis ttl) const {
  return change_holder(id, owner, "expires_at = " + from_now(ttl));
}

std::string Statements::change(std::uint64_t id, std::string_view owner, Millis ttl,
                               const std::string& record) const {
  return change_holder(id, owner,
                       "record = " + literal(record) + ", expires_at = " + from_now(ttl));
}

// On a cluster others add kMostSkew before the lease is over for them, for renewals that may come.
std::string Statements::end_command(std::uint64_t id, std::string_view owner, Millis left,
                                    const std::string& record) const {
  return change(id, owner, marks_.on_cluster() ? left - Pulse::kMostSkew : left, record);
}

std::string Statements::confirm(std::uint64_t id, std::string_view owner) const {
  const std::string row = method_ == Method::row ? ", " + marks_.session(row_mark(owner)) : "";
  return "SELECT kind, why" + row + " FROM " + tables_.locks + " WHERE " + is_row(id, owner);
}

// A server that has lost its last commits, as a replica that takes over or a backup that is
// restored, gives the numbers of the lost rows again, to the rows of other owners.
std::string Statements::is_row(std::uint64_t id, std::string_view owner) const {
  return "id = " + std::to_string(id) + " AND " + of_key() + " AND owner = " + literal(owner);
}

std::string Statements::is_our_holder(std::uint64_t id, std::string_view owner) const {
  return is_row(id, owner) + " AND " + kind_is(Kind::holder) + " AND " + is_ours();
}

std::string Statements::release_marks(std::string_view owner) const {
  return "DO " + marks_.release(holder_mark(owner)) + ", " + marks_.release(session_mark(owner));
}

std::string Statements::release(std::uint64_t id, std::string_view owner) const {
  return note_writable() + "DELETE FROM " + tables_.locks + " WHERE " + is_our_holder(id, owner) +
         " AND @dlock_writable; " + is_writable_still() + "; " + confirm(id, owner) + "; " +
         release_marks(owner);
}

std::string Statements::forget(std::uint64_t id) const {
  return "DELETE FROM " + tables_.locks + " WHERE id = " + std::to_string(id) + " AND " +
         kind_is(Kind::broken);
}

// May be repeated if its reply is lost: a row that it has broken is found again by its reason.
std::string Statements::break_grant(std::string_view owner, std::string_view why) const {
  constexpr Millis kKept{3'600'000};
  const std::string held = kind_is(Kind::holder) + " AND " + lives();
  return "UPDATE " + tables_.locks +
         " SET kind = " + std::to_string(static_cast<int>(Kind::broken)) +
         ", sole = NULL, why = " + literal(why) + ", expires_at = " + from_now(kKept) + " WHERE " +
         of_key() + " AND owner = " + literal(owner) + " AND (" + held + " OR " +
         kind_is(Kind::broken) + " AND why = " + literal(why) + "); SELECT " +
         marks_.session(session_mark(owner)) + ", " + marks_.session(row_mark(owner));
}

}  // namespace dlock::mysql
