// What the tests of the MySQL backends share: a server, clients, and what root sees there.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/mysql/connection.hpp"
#include "backends/mysql/database.hpp"
#include "backends/mysql/schema.hpp"
#include "client.hpp"
#include "support/mysql_server.hpp"
#include "support/proxy/proxy.hpp"
#include "support/test_registry.hpp"
#include "util/poll.hpp"

namespace dlock::test {

/// What a URL does not have.
struct MysqlSettings {
  Millis patience{5'000};
  std::optional<std::string> prefix = {};
};

inline Result<std::unique_ptr<Backend>> open_mysql(const std::string& url,
                                                   const MysqlSettings& settings) {
  auto parsed = parse_url(url);
  if (!parsed) return parsed.error();
  const BackendEntry& entry = *find_backend(parsed->scheme);
  parsed->scheme = std::string(entry.name);
  return entry.open(
      {.url = parsed.value(), .prefix = settings.prefix, .connect_timeout = settings.patience},
      soon(), Cancel());
}

inline std::unique_ptr<Backend> connect_mysql(const std::string& url,
                                              const MysqlSettings& settings = {}) {
  auto backend = open_mysql(url, settings);
  if (backend) return std::move(*backend);
  ADD_FAILURE() << url << ": " << backend.error().message;
  return nullptr;
}

template <class T>
Error error_of(const Result<T>& result) {
  if (!result) return result.error();
  ADD_FAILURE() << "it went well";
  return {Errc::invalid, ""};
}

inline bool says(const Error& error, std::string_view text) {
  return error.message.find(text) != std::string::npos;
}

/// A request that has to wait while `held` is granted.
inline Request mysql_rival_of(const Request& held) {
  return held.mode == Mode::slots ? slots(held.key, held.slots) : request(held.key);
}

inline Request brief(int ttl_ms, const std::string& key = "job") {
  return request(key, Mode::exclusive, 1, Millis{ttl_ms});
}

/// The parameter is the method.
class MysqlTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (find_backend("mysql")->open == nullptr) GTEST_SKIP() << "built without mysql";
    if (!MysqlServer::available()) GTEST_SKIP() << "mariadb is not installed";
    start();
  }
  void start(MysqlOptions options = {}) {
    a.reset();
    b.reset();
    proxy.reset();
    server.reset();
    server.emplace(std::move(options));
    proxy.emplace("127.0.0.1", server->port());
    a = client();
    b = client();
  }
  std::string method() const { return GetParam(); }
  mysql::Method method_number() const {
    return method() == "row"     ? mysql::Method::row
           : method() == "table" ? mysql::Method::table
                                 : mysql::Method::version;
  }

  std::string method_text() const { return std::to_string(static_cast<int>(method_number())); }

  std::unique_ptr<Backend> client(const MysqlSettings& settings = {}) const {
    return connect_mysql(server->url(method()), settings);
  }
  std::unique_ptr<Backend> client_of(const std::string& user) const {
    return connect_mysql(server->url(method(), user));
  }
  std::unique_ptr<Backend> through_proxy(int patience_ms = 5'000,
                                         const std::string& query = "") const {
    return connect_mysql("mysql-" + method() + "://app:sesame@127.0.0.1:" +
                             std::to_string(proxy->port()) + "/test" + query,
                         {.patience = Millis{patience_ms}});
  }
  /// The proxy can read what is asked.  MySQL lets a user in without TLS who has logged in with it.
  std::unique_ptr<Backend> readable_through_proxy() const {
    if (!MysqlServer::is_mariadb()) inspect(*client(), "job");
    return through_proxy(5'000, "?tls=off");
  }
  std::shared_ptr<const mysql::Place> place() const {
    return std::make_shared<const mysql::Place>(
        mysql::make_place({.url = parse_url(server->url(method())).value()}).value());
  }
  /// What is said to the server.
  std::shared_ptr<const mysql::MysqlDatabase> database() const {
    return std::make_shared<const mysql::MysqlDatabase>(place(), method_number());
  }
  /// A session of dlock's user, for a test to say what it likes.
  static std::unique_ptr<mysql::Connection> session_at(
      const std::shared_ptr<const mysql::Place>& place) {
    auto session = mysql::Connection::open(place, soon(), Cancel());
    if (!session) throw std::runtime_error(session.error().message);
    return std::move(*session);
  }
  long number(const std::string& sql) const { return std::stol(server->ask(sql)); }
  /// Both tables are there, and no key is known.
  void make_tables() {
    EXPECT_TRUE(is_free_for(*a, request("job")));
    server->ask("DELETE FROM dlock_locks; DELETE FROM dlock_keys");
  }
  long rows() const { return number("SELECT COUNT(*) FROM dlock_locks"); }
  bool rows_become(long count) const {
    return eventually([&] { return rows() == count; });
  }
  long sessions(const std::string& condition = "TRUE") const {
    return number("SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app' AND " +
                  condition);
  }
  /// At least so many sessions, of any user, that `condition` tells.
  bool processes_become(long count, const std::string& condition) const {
    return eventually([&] {
      return number("SELECT COUNT(*) FROM information_schema.processlist WHERE " + condition) >=
             count;
    });
  }
  bool sessions_become(long count) const {
    return eventually([&] { return sessions() == count; });
  }
  /// That of the row that `condition` tells.
  std::string session_of(const std::string& condition) const {
    return server->ask("SELECT IS_USED_LOCK(CONCAT('dlock.', owner)) FROM dlock_locks WHERE " +
                       condition);
  }
  void kill_session(const std::string& id) const { server->ask("KILL " + id); }
  bool waiters_are(std::size_t count, const std::string& key = "job") {
    return eventually([&] { return inspect(*b, key).waiters->size() == count; });
  }
  long status(const std::string& name) const {
    const std::string line = server->ask("SHOW GLOBAL STATUS LIKE '" + name + "'");
    return std::stol(line.substr(line.find('\t') + 1));
  }

  std::optional<MysqlServer> server;
  std::optional<Proxy> proxy;
  std::unique_ptr<Backend> a;
  std::unique_ptr<Backend> b;
};

inline std::string mysql_name(const testing::TestParamInfo<const char*>& info) {
  return info.param;
}

}  // namespace dlock::test
