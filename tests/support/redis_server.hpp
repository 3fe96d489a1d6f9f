// A real redis-server for one test.
#pragma once

#include <string>
#include <vector>

#include "support/fake_clock.hpp"
#include "support/test_server.hpp"

namespace dlock::test {

struct RedisOptions {
  /// Lines of redis.conf, after our own: no persistence, 127.0.0.1, a unix socket.
  std::vector<std::string> settings = {};
  /// The time of the server, if not the right one; lives longer than the server.
  const FakeClock* clock = nullptr;
};

/// On a unix socket, too.
class RedisServer final : public TestServer {
 public:
  /// Whether redis-server is installed; a test skips otherwise.
  static bool available();

  /// Ready when this returns.
  explicit RedisServer(RedisOptions options = {});

  const std::string& socket_path() const { return socket_; }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port()); }

  /// The reply to a command (see resp.hpp), as the default user, with the password of a
  /// `requirepass` among the settings: `redis.command("SET", "k", "v") == "OK"`.
  template <typename... Words>
  std::string command(const Words&... words) const {
    return run({std::string(words)...});
  }
  std::string run(const std::vector<std::string>& words) const;

 private:
  void launch() override;
  bool answers() const override;

  RedisOptions options_;
  std::string socket_;
  std::string password_;
};

}  // namespace dlock::test
