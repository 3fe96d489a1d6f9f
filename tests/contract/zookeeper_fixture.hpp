// What the tests of the ZooKeeper backend share: a server, clients, and an oracle for its nodes.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client.hpp"
#include "support/proxy/proxy.hpp"
#include "support/test_registry.hpp"
#include "support/zookeeper_client.hpp"
#include "support/zookeeper_server.hpp"
#include "util/poll.hpp"

namespace dlock::test {

/// What a URL does not have.
struct ZooKeeperSettings {
  Millis patience{5'000};
  std::optional<std::string> prefix = {};
  std::string auth = {};
  std::string style = {};
};

inline Result<std::unique_ptr<Backend>> open_zookeeper(const std::string& url,
                                                       const ZooKeeperSettings& settings) {
  auto parsed = parse_url(url);
  if (!parsed) return parsed.error();
  if (!settings.style.empty()) parsed->query["style"] = settings.style;
  return find_backend("zookeeper")
      ->open({.url = parsed.value(),
              .prefix = settings.prefix,
              .connect_timeout = settings.patience,
              .auth = settings.auth},
             soon(), Cancel());
}

inline std::unique_ptr<Backend> connect_zookeeper(const std::string& url,
                                                  const ZooKeeperSettings& settings = {}) {
  auto backend = open_zookeeper(url, settings);
  if (backend) return std::move(*backend);
  ADD_FAILURE() << url << ": " << backend.error().message;
  return nullptr;
}

class ZooKeeperTest : public testing::Test {
 protected:
  void SetUp() override {
    if (find_backend("zookeeper")->open == nullptr) GTEST_SKIP() << "built without zookeeper";
    if (!ZooKeeperServer::available()) GTEST_SKIP() << "zookeeper is not installed";
    start();
  }
  /// With options: on a server of its own.
  void start(const std::optional<ZooKeeperOptions>& options = {}) {
    a.reset();
    b.reset();
    proxy.reset();
    server.reset();
    if (options) {
      server = std::make_shared<ZooKeeperServer>(*options);
    } else {
      server = shared_server<ZooKeeperServer>();
      if (!server->clear()) {
        server->kill();
        server = shared_server<ZooKeeperServer>();
      }
    }
    proxy.emplace("127.0.0.1", server->port());
    a = client();
    b = client();
  }
  std::unique_ptr<Backend> client(const ZooKeeperSettings& settings = {}) const {
    return connect_zookeeper(server->url(), settings);
  }
  std::unique_ptr<Backend> through_proxy(int patience_ms = 5'000) const {
    return connect_zookeeper("zookeeper://127.0.0.1:" + std::to_string(proxy->port()),
                             {.patience = Millis{patience_ms}});
  }
  /// The oracle; a session for each use.
  ZooKeeperClient nodes() const { return ZooKeeperClient(server->port()); }
  std::vector<std::string> children(const std::string& key = "job") const {
    return nodes().children("/dlock/" + key);
  }
  bool queue_is(std::size_t count, const std::string& key = "job") const {
    if (eventually([&] { return children(key).size() == count; })) return true;
    for (const std::string& child : children(key)) ADD_FAILURE() << "queued: " << child;
    return false;
  }
  bool waiters_are(std::size_t count, const std::string& key = "job") {
    return eventually([&] { return inspect(*b, key).waiters->size() == count; });
  }
  /// Of the first in the queue, by name.
  std::int64_t session_of(const std::string& child, const std::string& key = "job") const {
    const auto stat = nodes().stat("/dlock/" + key + '/' + child);
    return stat ? stat->session : 0;
  }
  /// Of somebody behind the proxy, who is kept out meanwhile: a connection that is made in the very
  /// moment would be forgotten by the server, and go on to be answered.
  void end_session_of(const std::string& child) {
    const std::int64_t session = session_of(child);
    proxy->refuse();
    ZooKeeperClient::end_session(server->port(), session);
    proxy->pass();
  }

  std::shared_ptr<ZooKeeperServer> server;
  std::optional<Proxy> proxy;
  std::unique_ptr<Backend> a;
  std::unique_ptr<Backend> b;
};

/// A request that has to wait while `held` is granted.
inline Request zookeeper_rival_of(const Request& held) {
  return held.mode == Mode::slots ? slots(held.key, held.slots) : request(held.key);
}

/// So many nodes has a holder: its place in the queue, and the number of a slot.
inline std::size_t zookeeper_nodes_of(const Request& held) {
  return held.mode == Mode::slots ? 2 : 1;
}

}  // namespace dlock::test
