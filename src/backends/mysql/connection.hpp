// One connection to one server: statements go out, and are waited for until a deadline or Cancel.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/mysql/answer.hpp"
#include "backends/mysql/place.hpp"
#include "core/cancel.hpp"
#include "core/result.hpp"
#include "util/clock.hpp"

namespace dlock::mysql {

/// Of all the statements of one ask.
struct Reply {
  std::vector<Answer> answers;  // of those that succeeded, in their order
  unsigned code = 0;            // the server's or the library's number of the error; 0: none
  std::optional<Error> error;   // what ended it, fit for a message: names the server

  bool ok() const { return !error; }
};

/// Used by one thread at a time.
class Connection {
 public:
  /// Connects to the place's host; of several to the first that can be written to, the primary.
  /// The one that was it last is tried first.  All have until `deadline`, of which each gets an
  /// equal share of what those before it have left; no host has more than place.connect_timeout.
  /// Errc::unreachable, denied, invalid (no such database), unsupported (no client library),
  /// cancelled.  May leave a thread behind that waits for the network; the process can end in spite
  /// of it.  `earlier`, if there is one, is closed if connecting fails or takes longer than a
  /// second: the server, or a proxy before it, may have no connection to spare.
  static Result<std::unique_ptr<Connection>> open(const std::shared_ptr<const Place>& place,
                                                  Deadline deadline, Cancel cancel,
                                                  Connection* earlier = nullptr);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Sends one or more statements, separated by `;`, in one round trip and waits for the answers of
  /// all of them.  The first one that fails ends it: those after it are not carried out.  After
  /// Errc::cancelled, a deadline that has passed (Errc::unreachable) or a lost connection it is
  /// broken; but not if that was so before anything was sent.  One that is given up in this way
  /// stays open until close(): so the server can be asked what its statement waits for.
  Reply ask(const std::string& sql, Deadline deadline, Cancel cancel);

  /// As ask(); but where the server has found a deadlock, or waited too long for a lock, it is said
  /// again after a short pause, at most twenty times.
  Reply insist(const std::string& sql, Deadline deadline, Cancel cancel);

  /// As ask(), in two steps.  If there is no answer by the deadline, or when Cancel fires, the
  /// connection is not broken: the answer is still under way, and is to be received before anything
  /// else is sent.
  void send(const std::string& sql);
  Reply receive(Deadline deadline, Cancel cancel);
  bool under_way() const;

  /// Readable while nothing is asked: the server has closed the connection.  -1: broken.
  int fd() const;

  /// CONNECTION_ID() there, for KILL.
  std::uint64_t id() const;

  /// It knows SKIP LOCKED: MariaDB 10.6, MySQL 8.
  bool skips_locked() const;

  /// It is one of several servers that take writes: of a Galera cluster, or of a replication group
  /// with several primaries.
  bool on_cluster() const;

  /// What is said of a server that does not take writes.
  Error no_primary() const;

  /// As it is shown.
  const std::string& server() const;

  /// Closed or given up; every later ask fails at once.
  bool broken() const;

  /// Says goodbye to the server, unless something is under way.  Never blocks.
  void close();

 private:
  struct State;
  explicit Connection(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace dlock::mysql
