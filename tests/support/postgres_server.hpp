// A real PostgreSQL server for one test.
#pragma once

#include <string>
#include <vector>

#include "support/test_server.hpp"

namespace dlock::test {

/// On a unix socket, too.  What is in it, postgres/install.sh says; `app` is the user of dlock.
class PostgresServer : public TestServer {
 public:
  /// Whether a server is installed; a test skips otherwise.
  static bool available();

  /// With these settings ("fsync=off").  Ready when this returns, after some 0.2 s; where the
  /// variable TEST_POSTGRES_DATA does not name what install.sh made, after 1 s.
  explicit PostgresServer(std::vector<std::string> settings = {});

  const std::string& socket_directory() const { return directory(); }
  /// "postgres://app:sesame@127.0.0.1:PORT/test" for "table".
  std::string url(const std::string& method, const std::string& user = "app:sesame",
                  const std::string& database = "test") const;

  /// Starts again as a standby, which takes no writes; pg_promote() makes it a primary.
  void become_standby();

  /// What the superuser gets for statements: rows as lines, fields between bars, the last newline
  /// left out.  Throws if there is an error.
  std::string ask(const std::string& sql, const std::string& database = "test") const;

 private:
  void launch() override;
  bool answers() const override;
  void signal(int number) override;

  std::vector<std::string> settings_;
};

}  // namespace dlock::test
