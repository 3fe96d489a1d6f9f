// Everything that is said to the server, as text.  Each function tells what it asks, and what the
// answers are; who decides what stands in their sources.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backends/mysql/answer.hpp"
#include "backends/mysql/marks.hpp"
#include "backends/mysql/schema.hpp"
#include "core/backend.hpp"

namespace dlock::mysql {

class Statements {
 public:
  Statements(Method method, const std::string& prefix, std::string_view key, Marks marks = {});

  /// Of the server that the texts are for.
  const Marks& marks() const { return marks_; }
  void set_marks(Marks marks) { marks_ = std::move(marks); }

  /// Answers: the rows of the key (parse_party), in order.  `records`: with the records of those
  /// that wait, too.
  std::string look(bool records) const;

  /// Takes the lock, if it is free for `request` and nobody who waits comes before row `own` (0:
  /// everybody does), which must still be there.  The answers are those of attempted().
  std::string attempt(const Request& request, std::uint64_t own) const;

  /// Creates the row of the table of keys that counts the grants.
  std::string create_row() const;

  /// A row for who waits.  The answer has its id.
  std::string join(const Request& request) const;
  // Both for a cluster, and go in front of another text.
  /// Renews the lease of that row.
  std::string beat(std::uint64_t id) const;
  /// Removes what an earlier text of this owner has left that was carried out late: all its rows
  /// but `own`.
  std::string forget_late(std::string_view owner, std::uint64_t own) const;
  /// Removes what there is of this owner.
  std::string leave(std::string_view owner) const;
  /// Removes the rows of waiters whose connections have gone.
  std::string sweep(const std::vector<std::uint64_t>& ids) const;
  /// Removes some of the rows of other keys that nobody has used for a week.  Goes in front of
  /// another text.  For servers with Connection::skips_locked().
  std::string forget_unused() const;
  /// Removes the row of a waiter that does not come for the lock: see passed_over().
  std::string pass_over(std::uint64_t id) const;

  /// Goes behind renew() on a connection that is new: makes it the holder's, if the lease goes on.
  /// Waits up to `wait` for each of its two marks.  The last answer: as that of Marks::take().
  std::string resume(std::uint64_t id, std::string_view owner, Millis ttl, Millis wait) const;
  /// The answers are those of changed().
  std::string renew(std::uint64_t id, std::string_view owner, Millis ttl) const;
  /// The same, and writes a new record.
  std::string change(std::uint64_t id, std::string_view owner, Millis ttl,
                     const std::string& record) const;
  /// As change(), for a command that has ended: the lease is shortened to `left`.
  std::string end_command(std::uint64_t id, std::string_view owner, Millis left,
                          const std::string& record) const;
  /// The same, but the lock is given up.
  std::string release(std::uint64_t id, std::string_view owner) const;

  /// The lock is given up as by release(), and if it was ours, the mark is written, both in one
  /// transaction.  The answers are those of completed().
  std::string complete(std::uint64_t id, const Owner& owner, std::uint64_t fence,
                       const Completion& completion) const;

  /// Removes the note of a force-release that was heard.
  std::string forget(std::uint64_t id) const;

  /// The first answer has affected == 1 if the grant is broken; the second, the two sessions of its
  /// holder.
  std::string break_grant(std::string_view owner, std::string_view why) const;

  /// Of every key that begins with `prefix`: as look(true), in the order of key and id.
  std::string list(std::string_view prefix) const;

 private:
  std::string of_key() const;
  std::string lives() const;
  std::string is_ours() const;
  std::string is_row(std::uint64_t id, std::string_view owner) const;
  std::string is_our_holder(std::uint64_t id, std::string_view owner) const;
  std::string confirm(std::uint64_t id, std::string_view owner) const;
  static std::string note_writable();
  static std::string is_writable_still();
  std::string release_marks(std::string_view owner) const;
  std::string have_both(std::string_view owner) const;
  std::string change_holder(std::uint64_t id, std::string_view owner,
                            const std::string& changes) const;
  std::string columns(bool records) const;
  std::string in_way(const Request& request, std::uint64_t own, bool expired_too) const;
  std::string grant(const Request& request, std::uint64_t own, const std::string& check,
                    const std::string& condition, const std::string& slot) const;
  std::string lowest_free() const;
  std::string outcome_of_grant() const;

  const Method method_;
  const Tables tables_;
  const std::string method_text_;
  const std::string key_;  // a literal
  Marks marks_;
};

/// Of the answers to pass_over(): it has removed the row.
bool passed_over(const std::vector<Answer>& answers);

/// The outcome of a text that does nothing unless the lock is ours.
struct Written {
  bool is_primary = false;  // the server took writes all the time; if not, nothing is done
  bool is_done = false;     // what was asked; a complete() has left its mark as well
  const Answer& found;      // kind and why of what there is of the lock; of mysql-row, the session
                            // with row_mark()
};
/// The answers to renew(), change(), end_command() and release().
Written changed(const std::vector<Answer>& answers);
/// Those to complete().
Written completed(const std::vector<Answer>& answers);

/// What attempt() says of itself.
struct Outcome {
  bool fit = false;       // the tables are as they must be
  bool has_row = false;   // there is a row of the key in the table of keys
  std::uint64_t won = 0;  // the id of the holder's row; 0: not granted
  std::uint64_t fence = 0;
  unsigned slot = 0;  // in the holder's row
};
Outcome outcome(const Answer& answer);

/// The answers to attempt(), whatever went in front of it.
struct Attempted {
  Outcome outcome;
  const Answer& rows;       // as of look(false)
  bool is_primary = false;  // it takes writes, without which nothing is granted
};
Attempted attempted(const std::vector<Answer>& answers);

}  // namespace dlock::mysql
