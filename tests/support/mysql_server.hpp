// A real MariaDB server for one test.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "support/reserved_port.hpp"
#include "support/temp_dir.hpp"

namespace dlock::test {

struct MysqlOptions {
  /// Of mariadbd, after our own: small, without a binary log, on 127.0.0.1 ("read_only=1").
  std::vector<std::string> settings = {};
  std::vector<std::string> environment = {};  // "NAME=value"
};

/// On a free port of 127.0.0.1 and a unix socket, in a directory of its own.  There is a database
/// `test`; root has no password, and `app` has the password `sesame` and may do anything in it.
/// Killed at the end, and when the test process ends.  What cannot be done, or not within 30 s,
/// throws.
class MysqlServer {
 public:
  /// Whether MariaDB's server and client are installed; a test skips otherwise.
  static bool available();

  /// Ready when this returns, after some 0.3 s; the first one of a process takes 0.5 s more.
  explicit MysqlServer(MysqlOptions options = {});
  ~MysqlServer();
  MysqlServer(const MysqlServer&) = delete;
  MysqlServer& operator=(const MysqlServer&) = delete;

  int port() const { return port_.port(); }
  const std::string& socket_path() const { return socket_; }
  /// "mysql-table://app:sesame@127.0.0.1:PORT/test" for "table".
  std::string url(const std::string& method, const std::string& user = "app:sesame") const;
  pid_t pid() const { return pid_; }

  /// It does nothing, and connections to it stay open, once pause() has returned.
  void pause();
  void resume();

  /// As a power failure of its machine, but for the FIN or RST that the kernel sends.
  void kill();
  /// After kill(): the same port and data.  Ready when this returns.
  void start_again();

  /// What root gets for statements in the database test: rows as lines, fields between tabs, the
  /// last newline left out.  Throws if there is an error.
  std::string ask(const std::string& sql) const;

 private:
  void start();
  bool answers() const;
  /// Waits for a change of the process; false when it has ended, and is reaped.
  bool runs(int wait_flags);
  std::string complaints() const;

  MysqlOptions options_;
  TempDir dir_;
  ReservedPort port_;
  std::string socket_;
  pid_t pid_ = -1;
};

}  // namespace dlock::test
