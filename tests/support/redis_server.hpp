// A real redis-server for one test.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "support/fake_clock.hpp"
#include "support/reserved_port.hpp"
#include "support/temp_dir.hpp"

namespace dlock::test {

struct RedisOptions {
  /// Lines of redis.conf, after our own: no persistence, 127.0.0.1, a unix socket.
  std::vector<std::string> settings = {};
  /// The time of the server, if not the right one; lives longer than the server.
  const FakeClock* clock = nullptr;
};

/// On a free port of 127.0.0.1 and a unix socket, in a directory of its own.  Killed at the end,
/// and when the test process ends.  What cannot be done, or not within 20 s, throws.
class RedisServer {
 public:
  /// Whether redis-server is installed; a test skips otherwise.
  static bool available();

  /// Ready when this returns.
  explicit RedisServer(RedisOptions options = {});
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  int port() const { return port_.port(); }
  const std::string& socket_path() const { return socket_; }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port()); }
  pid_t pid() const { return pid_; }

  /// It does nothing, and connections to it stay open, once pause() has returned.
  void pause();
  void resume();

  /// As a power failure of its machine, but for the FIN or RST that the kernel sends.
  void kill();
  /// After kill(): the same port and directory.  Ready when this returns.
  void start_again();

  /// The reply to a command (see resp.hpp), as the default user, with the password of a
  /// `requirepass` among the settings: `redis.command("SET", "k", "v") == "OK"`.
  template <typename... Words>
  std::string command(const Words&... words) const {
    return run({std::string(words)...});
  }
  std::string run(const std::vector<std::string>& words) const;

 private:
  void start();
  bool answers() const;
  /// Waits for a change of the process; false when it has ended, and is reaped.
  bool runs(int wait_flags);
  std::string complaints() const;

  RedisOptions options_;
  TempDir dir_;
  ReservedPort port_;
  std::string socket_;
  std::string password_;
  pid_t pid_ = -1;
};

}  // namespace dlock::test
