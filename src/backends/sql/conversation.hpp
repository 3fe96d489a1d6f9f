// What is asked beside the acquire() and the lease of a lock: each text may be said twice.
#pragma once

#include <memory>
#include <string>

#include "backends/sql/database.hpp"

namespace dlock::sql {

class Conversation {
 public:
  /// Over a session that is opened when it is first needed, and again if it is lost.
  explicit Conversation(std::shared_ptr<const Database> database)
      : database_(std::move(database)) {}
  /// Over this session alone.
  Conversation(std::shared_ptr<const Database> database, Session& session)
      : database_(std::move(database)), session_(&session) {}

  const std::shared_ptr<const Database>& database() const { return database_; }

  /// Opens the session if there is none.  What is said can depend on the server: see Database.
  Result<void> connect(Deadline deadline);

  /// The reply is ok, or says that a table is missing.  Waits for the connect timeout at most, even
  /// if the deadline is later.
  Result<Reply> ask(const std::string& text, Deadline deadline);

  /// The same, and creates the tables that are missing.
  Result<Reply> ask_with_tables(const std::string& text, Deadline deadline);

  /// See Database::check_tables().
  Result<void> check_records(Deadline deadline);

  /// The session, if there is one, for a lease.
  std::unique_ptr<Session> take_session() { return std::move(own_); }

 private:
  Deadline until(Deadline deadline) const;
  Result<Session*> session(Deadline deadline);

  const std::shared_ptr<const Database> database_;
  Session* const session_ = nullptr;
  std::unique_ptr<Session> own_;
};

}  // namespace dlock::sql
