// Two MariaDB servers that copy each other's changes, and of which both take changes.
#pragma once

#include <array>
#include <list>
#include <memory>
#include <optional>

#include "support/fake_clock.hpp"
#include "support/mysql_server.hpp"
#include "support/reserved_port.hpp"

namespace dlock::test {

class GaleraCluster {
 public:
  /// Whether Galera is installed, and what it needs; a test skips otherwise.
  static bool available();

  /// Ready when this returns, after some 5 s.  The clock of the second server is ahead.
  explicit GaleraCluster(Millis ahead = Millis{0});

  const MysqlServer& server(int number) const { return number == 0 ? *first_ : *second_; }

 private:
  MysqlOptions options(const std::string& address);

  std::list<ReservedPort> ports_;
  FakeClock clock_;
  std::string address_;  // of the first one, for the second
  std::optional<MysqlServer> first_, second_;
};

}  // namespace dlock::test
