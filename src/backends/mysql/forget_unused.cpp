// Rows that nobody uses any more, each kind by a statement of its own:
// 1. Waiters whose sessions have ended, and holders that have expired.
// 2. The row of one key without holders and waiters.  Its version tells when the last grant was; a
//    grant that is under way makes it young.
//
// No client must wait for this.  Locked rows are skipped: they are in use, or an administrator
// holds them.  The key is chosen by a plain SELECT, which waits for no lock; a subquery of a DELETE
// would.
//
// Only 16 rows or keys are looked at, in the order of the primary key.  An index on the age would
// be better, but with one, MariaDB 10.11 aborts when its disk is full.  Of the locks: from the
// first one or a random one on.  Of the keys: what follows our own; the first ones; and, of any
// method, what follows a random part of the beginning of our own, since names that are used once
// often begin alike.
#include "backends/mysql/clauses.hpp"
#include "backends/mysql/sql.hpp"
#include "backends/mysql/statements.hpp"

namespace dlock::mysql {

std::string Statements::forget_unused() const {
  const std::string week = " INTERVAL 7 DAY";
  const std::string now(kNow);
  const std::string no_holder = marks_.of_row(kHolderMark) + " IS NULL";
  const std::string skip = " LIMIT 16 FOR UPDATE SKIP LOCKED) AS unused STRAIGHT_JOIN ";
  const std::string old_locks = "(SELECT id FROM " + tables_.locks +
                                " WHERE id BETWEEN @dlock_from AND @dlock_to AND since < " + now +
                                " -" + week + " AND ";
  const std::string its_lock = skip + tables_.locks + " AS lock_row ON lock_row.id = unused.id";
  const std::string week_ago = std::string(kNowMs) + " - 604800000";
  const auto find_key = [&](const std::string& method, const std::string& after) {
    return "SET @dlock_method = IF(@dlock_unused IS NULL, " + method +
           ", @dlock_method); SELECT name INTO @dlock_unused FROM (SELECT method, name, version "
           "FROM " +
           tables_.keys + " WHERE method = @dlock_method AND name > " + after +
           " ORDER BY method, name LIMIT 16) AS one WHERE @dlock_unused IS NULL AND NOT (method "
           "= " +
           method_text_ + " AND name = " + key_ + ") AND version < " + week_ago +
           " AND NOT EXISTS (SELECT 1 FROM " + tables_.locks +
           " AS lock_row WHERE lock_row.method = @dlock_method AND lock_row.name = one.name) "
           "LIMIT 1; ";
  };
  const std::string beginning = "LEFT(" + key_ + ", FLOOR(@dlock_part * LENGTH(" + key_ + ")))";
  return "SELECT CAST(MIN(id) + IF(RAND() < 0.5, 0, RAND()) * (MAX(id) - MIN(id)) AS UNSIGNED), "
         "MAX(id) INTO "
         "@dlock_from, @dlock_to FROM " +
         tables_.locks + "; SELECT id INTO @dlock_to FROM " + tables_.locks +
         " WHERE id >= @dlock_from ORDER BY id LIMIT 15, 1; DELETE lock_row FROM " + old_locks +
         "(" + kind_is(Kind::waiter) + " AND " + marks_.of_row(kWaiterMark) +
         " IS NULL OR expires_at < " + now + " AND " + no_holder + ")" + its_lock +
         "; SET @dlock_unused = NULL, @dlock_part = RAND(); " + find_key(method_text_, key_) +
         find_key(method_text_, literal("")) +
         find_key("CAST(FLOOR(1 + RAND() * 3) AS UNSIGNED)", beginning) +
         "DELETE key_row FROM (SELECT method, name FROM " + tables_.keys +
         " WHERE method = @dlock_method AND name = @dlock_unused AND version < " + week_ago + skip +
         tables_.keys +
         " AS key_row ON key_row.method = unused.method AND key_row.name = unused.name; ";
}

}  // namespace dlock::mysql
