// The client library, whose every function blocks, on a thread of its own that others can leave.
#pragma once

#include <memory>
#include <string>

#include "backends/mysql/place.hpp"
#include "backends/sql/session.hpp"

namespace dlock::mysql {

class Library;

/// One connection to one host.  It is asked one thing at a time; the thread holds a share of it, so
/// that its user need not wait for the answer.
class Worker {
 public:
  struct Greeting {
    int fd = -1;  // open until leave()
    std::uint64_t id = 0;
  };

  struct Outcome : sql::Reply {
    bool ends_connection = false;  // nothing more can be asked
  };

  /// Begins to connect.  Errc::unreachable if there can be no thread.
  static Result<std::shared_ptr<Worker>> start(const Library& library,
                                               std::shared_ptr<const Place> place, HostPort host);

  /// Readable once what was begun is done.
  int done_fd() const;

  /// How connecting came out; once it is done.
  Result<Greeting> greeting();

  /// Begins to send statements.
  void ask(std::string sql);

  /// The reply to them; once it is done.
  Outcome reply();

  /// The thread is to end.  True if nothing was under way: then it says goodbye to the server, and
  /// done_fd() tells when it has.  Nothing else may be called after this.
  bool leave();

  struct Shared;
  explicit Worker(std::unique_ptr<Shared> shared);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

 private:
  std::unique_ptr<Shared> shared_;
};

}  // namespace dlock::mysql
