// One connection to a database: texts go out, and their answers are waited for until a deadline or
// Cancel.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/sql/answer.hpp"
#include "core/cancel.hpp"
#include "core/result.hpp"
#include "util/clock.hpp"

namespace dlock::sql {

/// Why a text was not carried out, as far as the client does something about it.
enum class Trouble {
  none,
  passing,   // a deadlock, a wait that was too long, a row that has changed: say it again
  no_table,  // a table is missing
  other,
};

/// The answers to one text.
struct Reply {
  std::vector<Answer> answers;  // of the statements that succeeded, in their order
  Trouble trouble = Trouble::none;
  std::optional<Error> error;  // names the server

  bool ok() const { return !error; }
};

/// Used by one thread at a time.
class Session {
 public:
  Session() = default;
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Sends a text of one or more statements and waits for all answers.  The first statement that
  /// fails ends the text, and a transaction that the text has begun is rolled back.  After
  /// Errc::cancelled, a deadline that has passed (Errc::unreachable) or a lost connection, the
  /// session is broken; but not if nothing was sent.
  Reply ask(const std::string& text, Deadline deadline, Cancel cancel);

  /// As ask().  What has failed is said again while the trouble passes, after a short pause, at
  /// most twenty times.
  Reply insist(const std::string& text, Deadline deadline, Cancel cancel);

  /// As ask(), in two steps, without a rollback.  If there is no answer by the deadline, or when
  /// Cancel fires, the session is not broken: the answer is still to be received, before anything
  /// else is sent.
  virtual void send(const std::string& text) = 0;
  virtual Reply receive(Deadline deadline, Cancel cancel) = 0;
  virtual bool under_way() const = 0;

  /// Readable while nothing is asked: the server has closed the connection.  -1: broken.
  virtual int fd() const = 0;

  /// The server, as it is shown.
  virtual const std::string& server() const = 0;

  /// Closed or given up.
  virtual bool broken() const = 0;

  /// Ends the session, for `why`, with which each later ask() fails.  Says goodbye to the server
  /// unless something is under way.  Never blocks.
  virtual void close(const std::string& why) = 0;
  void close() { close(server() + ": the connection is closed"); }
};

/// The error of a server that does not take writes.
Error no_primary(const std::string& server);

/// The last of the answers; an empty one if there is none.
const Answer& last_answer(const Reply& reply);

}  // namespace dlock::sql
