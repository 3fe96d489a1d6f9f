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
// Under     the lock, marks are read over the connection that holds it: another one may lead to a
//           server that was demoted.
#include "backends/mysql/clauses.hpp"
#include "backends/mysql/sql.hpp"
#include "backends/mysql/statements.hpp"

namespace dlock::mysql {

// No ROW_COUNT() here: if the client is gone, and the server cannot send what a statement has done,
// MariaDB (10.11) goes on with the next one, in which ROW_COUNT() is -1.
std::string Statements::complete(std::uint64_t id, const Owner& owner, std::uint64_t fence,
                                 const Completion& completion) const {
  const std::string is_mark = is_record(method_text_, key_, completion.period);
  return note_writable() + "START TRANSACTION; SELECT period FROM " + tables_.records + " WHERE " +
         is_mark + " FOR UPDATE; SET @dlock_ours = NULL; SELECT id INTO @dlock_ours FROM " +
         tables_.locks + " WHERE " + is_our_holder(id, owner.id) +
         " AND @dlock_writable FOR UPDATE; DELETE FROM " + tables_.locks +
         " WHERE id = @dlock_ours; " +
         add_record("REPLACE", tables_.records, method_text_, key_, completion.period,
                    format_mark(owner, fence, completion.remember), "@dlock_ours IS NOT NULL") +
         "; SELECT COUNT(*) FROM " + tables_.records + " WHERE " + is_mark + " AND LOCATE(" +
         literal("\"id\":\"" + owner.id + '"') + ", record) > 0; " + confirm(id, owner.id) +
         "; COMMIT; " + is_writable_still() + "; " + release_marks(owner.id);
}

// Behind these comes a DO, and before the third, a COMMIT.
Written completed(const std::vector<Answer>& answers) {
  const std::size_t end = answers.size();
  return {number_in(answers.at(end - 2)) == 1, number_in(answers.at(end - 5)) == 1,
          answers.at(end - 4)};
}

}  // namespace dlock::mysql
