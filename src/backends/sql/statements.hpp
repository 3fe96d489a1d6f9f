// What is said to a database about one lock.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backends/sql/database.hpp"
#include "backends/sql/lock_rows.hpp"
#include "core/backend.hpp"

namespace dlock::sql {

/// What a session has after look() and wait_for_gate().  After watch(): whether the name of the
/// holder was free.
struct Gained {
  bool has_name = false;
  bool has_gate = false;
};

class Statements {
 public:
  /// `database` must outlive this object.
  Statements(const Database& database, std::string_view key);

  // The answers to these three: gained(), and those of look_of().
  /// Takes the own name and tries the gate, but for what the session `has`.  Waits so long for an
  /// earlier session that has the name.
  std::string look(std::string_view owner, Millis for_name, Gained has = {}) const;
  std::string wait_for_gate(std::string_view owner, Millis time) const;
  /// Waits until the session of this holder has ended, or has released its name.
  std::string watch(std::string_view owner, std::string_view holder, Millis time) const;

  /// All rows of the key.  The answers: those of look_of().
  std::string peek() const;

  /// Creates the row of the key, which counts the grants.
  std::string create_key() const;
  /// The last answer: how many wait.
  std::string join(const Request& request) const;
  /// The answers: those of taken().
  std::string take(const Request& request, const Look& look, const Decision& decision,
                   bool has_gate) const;
  /// Removes the rows of these owners, which are the caller's.
  std::string leave(std::span<const std::string> owners) const;
  /// Removes those of these rows of others that nobody uses: none of a holder that is there.
  std::string sweep_rows(std::span<const std::string> owners) const;
  /// Removes the rows of other waiters of this key that are not there any more.
  std::string sweep_key(std::string_view owner) const;
  /// Stands before another text: finds some rows that nobody uses, of any key.  The answers: their
  /// owners, and keys.
  std::string sweep() const;
  std::string forget_keys(std::span<const std::string> keys) const;

  // The answers to these: those of changed().
  /// `has_name`: the session is the holder's since the grant.  Of a row whose record is neither
  /// `known` nor `record`, nothing is shortened or replaced.
  std::string renew(std::string_view owner, Millis ttl, bool has_name, const std::string& known,
                    const std::string& record) const;
  std::string release(std::string_view owner, bool has_name) const;
  /// Releases the lock and writes a done-mark.
  std::string complete(const Owner& owner, std::uint64_t fence, const Completion& completion,
                       bool has_name) const;

  /// Makes a session that of the holder.  The last answer: whether it is.
  std::string take_name(std::string_view owner, Millis ttl) const;

  /// The answers: those of broken().
  std::string break_grant(std::string_view owner, std::string_view why) const;
  std::string end_session(std::string_view owner, const std::string& session) const;

  /// Locks the row of the key.  Other programs are waited for, a second if `once`, else for as long
  /// as the database may be let wait.  The last answer: the row.
  std::string lock_row(const Request& request, bool once) const;
  /// From now on the server ends the session of the row after so long a silence.
  std::string keep_row(Millis ttl) const;

 private:
  std::string fill(std::string_view text, Values values) const;
  std::string literals(std::span<const std::string> texts) const;
  std::string wait_for_name(std::string_view owner, Millis time) const;
  Values of_request(const Request& request) const;

  const Database& database_;
  const std::string name_;
  const std::string key_;  // a literal
  const std::string gate_;
};

/// Where a sweep begins to look: at all keys, or at those that begin like this one, since names
/// that are used once often begin alike.
std::string_view random_beginning(std::string_view key);

/// All rows of the keys that begin so.
std::string list(const Database& database, std::string_view prefix);

Gained gained(const Reply& reply);

struct Taken {
  bool is_won = false;
  bool is_primary = false;  // else it is not known whether it is won
  std::uint64_t fence = 0;
};
Taken taken(const Reply& reply);

/// The outcome of a text that does nothing unless the lock is still the caller's.
struct Changed {
  bool is_primary = false;  // the server took writes all the time; else it is not known
  bool is_done = false;
  std::optional<LockRow::Role> role;  // of the own row, if it is there
  std::string why;                    // it was broken
  bool has_row_session = false;       // renew(): the row of the key is locked
  bool is_repeated = false;           // the answer to an earlier text was lost
};
Changed changed(const Reply& reply);

struct Broken {
  bool is_primary = false;
  bool is_done = false;
  std::string session;      // that has the holder's name; "": none
  std::string row_session;  // that has its row locked
};
Broken broken(const Reply& reply);

}  // namespace dlock::sql
