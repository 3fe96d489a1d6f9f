// What the servers that tests start have in common.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "support/reserved_port.hpp"
#include "support/temp_dir.hpp"

namespace dlock::test {

/// A real server as a child process, on a free port of 127.0.0.1, in a directory of its own. Killed
/// at the end, and when the test process ends.  What cannot be done, or not within 30 s, throws.
class TestServer {
 public:
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;
  virtual ~TestServer() { kill(); }

  int port() const { return port_.port(); }
  pid_t pid() const { return pid_; }

  /// It does nothing, and connections to it stay open, once pause() has returned.
  void pause();
  void resume();

  /// Whether it was paused or killed: what it does next then depends on that.
  bool disturbed() const { return disturbed_; }

  /// As a power failure of its machine, but for the FIN or RST that the kernel sends.
  void kill();
  /// After kill(): the same port and data.  Ready when this returns.
  void start_again();

 protected:
  /// `name` is the program's, for what is thrown.
  explicit TestServer(std::string name) : name_(std::move(name)) {}

  /// Starts it, by start().
  virtual void launch() = 0;
  /// Whether it serves.
  virtual bool answers() const = 0;
  /// Sends a signal to all its processes.
  virtual void signal(int number);

  void start(const std::vector<std::string>& argv,
             const std::vector<std::string>& environment = {});
  void wait_until_ready();
  const std::string& directory() const { return dir_.path(); }

 private:
  /// Waits for a change of the process; false when it has ended, and is reaped.
  bool runs(int wait_flags);
  std::string output() const;

  std::string name_;
  TempDir dir_;
  ReservedPort port_;
  pid_t pid_ = -1;
  bool disturbed_ = false;
};

/// A server for those tests of this process that only use it, one after the other: starting one
/// costs more than most tests.  Another one if the one before was disturbed.
template <class Server>
std::shared_ptr<Server> shared_server() {
  static std::shared_ptr<Server> server;
  if (!server || server->disturbed()) server = std::make_shared<Server>();
  return server;
}

}  // namespace dlock::test
