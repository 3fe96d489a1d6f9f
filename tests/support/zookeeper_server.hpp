// Real ZooKeeper servers for one test: a single one, and an ensemble of three.
#pragma once

#include <sys/types.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "support/reserved_port.hpp"
#include "support/temp_dir.hpp"

namespace dlock::test {

struct ZooKeeperOptions {
  /// Lines of zoo.cfg, after our own: 127.0.0.1, a tick of 100 ms, sessions of 200 ms to 60 s.
  std::vector<std::string> settings = {};
  /// Of the JVM: what zoo.cfg does not have ("-Dznode.container.checkIntervalMs=50").
  std::vector<std::string> properties = {};
  /// For a member of an ensemble, its number; its constructor does not wait until it is ready.
  int member = 0;
};

/// On a free port of 127.0.0.1, in a directory of its own.  Killed at the end, and when the test
/// process ends.  What cannot be done, or not within 30 s, throws.
class ZooKeeperServer {
 public:
  /// Whether the Debian package zookeeper is installed; a test skips otherwise.
  static bool available();

  /// Ready when this returns, after some 0.3 s.
  explicit ZooKeeperServer(ZooKeeperOptions options = {});
  ~ZooKeeperServer();
  ZooKeeperServer(const ZooKeeperServer&) = delete;
  ZooKeeperServer& operator=(const ZooKeeperServer&) = delete;

  int port() const { return port_.port(); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port()); }
  std::string url() const { return "zookeeper://" + address(); }
  pid_t pid() const { return pid_; }

  /// It does nothing, and connections to it stay open, once pause() has returned.
  void pause();
  void resume();

  /// As a power failure of its machine, but for the FIN or RST that the kernel sends.
  void kill();
  /// After kill(): the same port and data, so that the sessions are there.  Ready when this
  /// returns.
  void start_again();
  /// After kill(): it forgets everything, the sessions too.
  void erase();

  /// The answer to a four-letter word: `server.ask("ruok") == "imok"`; empty if there is none.
  std::string ask(const std::string& word) const;
  /// A number of `mntr`, e.g. "zk_watch_count"; -1 if there is none of that name.
  long monitored(const std::string& name) const;
  /// "standalone", "leader" or "follower"; empty while it does not serve.
  std::string mode() const;

  /// For the ensemble: start() without the waiting, and the waiting.
  void launch();
  void wait_until_ready();

 private:
  /// Waits for a change of the process; false when it has ended, and is reaped.
  bool runs(int wait_flags);
  std::string complaints() const;

  ZooKeeperOptions options_;
  TempDir dir_;
  ReservedPort port_;
  pid_t pid_ = -1;
};

/// Three servers that elect a leader.
class ZooKeeperEnsemble {
 public:
  /// Ready, with a leader, when this returns, after some 1.5 s.
  explicit ZooKeeperEnsemble(std::vector<std::string> settings = {});

  ZooKeeperServer& operator[](std::size_t i) { return *servers_.at(i); }
  std::size_t size() const { return servers_.size(); }
  /// Of all servers, comma-separated, for a client's configuration.
  std::string addresses() const;
  std::string url() const { return "zookeeper://" + addresses(); }
  /// The one that leads now; waits until there is one.
  std::size_t leader();

 private:
  std::array<ReservedPort, 6> peer_ports_;
  std::array<std::unique_ptr<ZooKeeperServer>, 3> servers_;
};

}  // namespace dlock::test
