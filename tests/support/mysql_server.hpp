// A real MariaDB server for one test, or one of MySQL: with TEST_MYSQL_ROOT (tests/with-mysql.sh).
#pragma once

#include <string>
#include <vector>

#include "support/test_server.hpp"

namespace dlock::test {

struct MysqlOptions {
  /// Of the server, after our own: small, without a binary log, on 127.0.0.1 ("read_only=1").
  std::vector<std::string> settings = {};
  std::vector<std::string> environment = {};  // "NAME=value"
  bool is_open_to_all = false;                // every user of this machine may change its files
};

/// On a unix socket, too.  What is in it, mysql/install.sh says; `app` is the user of dlock.
class MysqlServer : public TestServer {
 public:
  /// Whether a server and MariaDB's client are installed; a test skips otherwise.
  static bool available();
  /// False: it is MySQL's, and what is MariaDB's alone is not tested.
  static bool is_mariadb();

  /// Ready when this returns, after some 0.2 s; where the variable TEST_MYSQL_DATA does not name
  /// what install.sh made, the first one of a process takes 0.4 s more.
  explicit MysqlServer(MysqlOptions options = {});

  const std::string& socket_path() const { return socket_; }
  /// "mysql://app:sesame@127.0.0.1:PORT/test" for "table".
  std::string url(const std::string& method, const std::string& user = "app:sesame",
                  const std::string& database = "test") const;

  /// What root gets for statements in the database test: rows as lines, fields between tabs, the
  /// last newline left out.  Throws if there is an error.
  std::string ask(const std::string& sql) const;

 private:
  void launch() override;
  bool answers() const override;

  MysqlOptions options_;
  std::string socket_;
};

}  // namespace dlock::test
