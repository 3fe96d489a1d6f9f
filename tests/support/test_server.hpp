// What the servers that tests start have in common.
#pragma once

#include <sys/types.h>

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
};

}  // namespace dlock::test
