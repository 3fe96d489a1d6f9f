// Real ZooKeeper servers for one test: a single one, and an ensemble of three.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "support/test_server.hpp"

namespace dlock::test {

struct ZooKeeperOptions {
  /// Lines of zoo.cfg, after our own: 127.0.0.1, a tick of 100 ms, sessions of 200 ms to 60 s.
  std::vector<std::string> settings = {};
  /// Of the JVM: what zoo.cfg does not have ("-Dznode.container.checkIntervalMs=50").
  std::vector<std::string> properties = {};
  /// For a member of an ensemble, its number; its constructor does not wait until it is ready.
  int member = 0;
};

class ZooKeeperServer final : public TestServer {
 public:
  /// Whether the Debian package zookeeper is installed; a test skips otherwise.
  static bool available();

  /// Ready when this returns, after some 0.3 s.
  explicit ZooKeeperServer(ZooKeeperOptions options = {});

  std::string address() const { return "127.0.0.1:" + std::to_string(port()); }
  std::string url() const { return "zookeeper://" + address(); }

  /// Removes all nodes but the server's own; false if somebody's ACL forbids it.
  bool clear() const;

  /// After kill(): it forgets everything, the sessions too, which start_again() would find.
  void erase();

  /// The answer to a four-letter word: `server.ask("ruok") == "imok"`; empty if there is none.
  std::string ask(const std::string& word) const;
  /// A number of `mntr`, e.g. "zk_watch_count"; -1 if there is none of that name.
  long monitored(const std::string& name) const;
  /// "standalone", "leader" or "follower"; empty while it does not serve.
  std::string mode() const;

  /// For the ensemble, and after kill(): start_again() without the waiting.
  void launch() override;
  using TestServer::wait_until_ready;

 private:
  bool answers() const override { return !mode().empty(); }

  ZooKeeperOptions options_;
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
  /// After kill() and pause(): all three run and serve again.
  void repair();

 private:
  std::array<ReservedPort, 6> peer_ports_;
  std::array<std::unique_ptr<ZooKeeperServer>, 3> servers_;
};

}  // namespace dlock::test
