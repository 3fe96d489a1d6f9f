// What a database offers to the SQL backends: sessions, and texts in its dialect.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/sql/session.hpp"
#include "core/backend.hpp"

namespace dlock::sql {

/// The texts, as they stand in the .sql files of a database: there is what each of them does, and
/// what the answers are.
struct Texts {
  std::string_view break_grant, complete, create_key, end_session, forget_keys, gate, join, leave,
      list;
  std::string_view lock_advisory = {};  // of PostgreSQL
  std::string_view lock_row, look, peek, record_delete, record_insert, record_list, record_read,
      record_sample, record_try, record_update, release, renew, state, sweep, sweep_key, sweep_rows,
      take, take_name, watch;
};

/// Names of holes, and what replaces each {name} in a text.
using Values = std::vector<std::pair<std::string_view, std::string>>;

/// One database, with one method and one prefix.  Used by any thread.
class Database {
 public:
  Database() = default;
  virtual ~Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  virtual const std::string& location() const = 0;  // see Backend::location()
  virtual const std::string& shown() const = 0;     // for messages
  virtual Millis connect_timeout() const = 0;

  /// No session locks are used: waiters look again each second, and a lease is over when it has not
  /// changed for its ttl by the clock of the client that looks.  Known after open().
  virtual bool is_without_session_locks() const { return false; }

  /// A holder has a row locked as well, which other programs may lock.
  virtual bool locks_rows() const { return false; }
  /// What such a program does: "has locked ...".
  virtual std::string foreign_lock() const { return ""; }

  /// Other servers know what this one loses in a crash.  Known after open().
  virtual bool has_copies() const { return false; }

  /// A new session with the server that takes writes.
  virtual Result<std::unique_ptr<Session>> open(Deadline deadline, Cancel cancel) const = 0;

  virtual const Texts& texts() const = 0;
  /// A text in which each hole is filled by `values`, or by what is the same for all texts.
  std::string fill(std::string_view text, const Values& values) const;

  /// Any bytes, as a literal.
  virtual std::string literal(std::string_view bytes) const = 0;
  /// An instant that the database has written, as a literal.
  virtual std::string instant(std::string_view text) const = 0;
  /// The session lock of an owner, that of the session that has its row locked, and that of a key.
  virtual std::string own_name(std::string_view owner) const = 0;
  virtual std::string row_name(std::string_view owner) const = 0;
  virtual std::string gate_name(std::string_view key) const = 0;

  /// Creates those tables that are missing.
  virtual Result<void> create_tables(Session& session, Deadline deadline, Cancel cancel) const = 0;
  /// Fails if a table that is there, of those that locks or records need, is not as dlock makes it:
  /// two clients could hold one lock, or a record be lost.
  enum class Part { locks, records };
  virtual Result<void> check_tables(Part part, Session& session, Deadline deadline,
                                    Cancel cancel) const = 0;

 protected:
  /// What is the same for all texts.  These may have holes, too.
  virtual const Values& common() const = 0;
};

}  // namespace dlock::sql
