// What the tests of redlock share: five servers, ways to lose some of them, and clients.
#pragma once

#include <bit>
#include <deque>
#include <iostream>

#include "redis_fixture.hpp"

namespace dlock::test {

/// A set of servers, one bit each.
using Mask = unsigned;
inline constexpr unsigned kServers = 5;
inline constexpr unsigned kQuorum = 3;
inline constexpr Mask kEach = (1U << kServers) - 1;

inline std::vector<unsigned> members(Mask mask) {
  std::vector<unsigned> out;
  for (unsigned node = 0; node < kServers; ++node) {
    if ((mask >> node & 1U) != 0) out.push_back(node);
  }
  return out;
}
inline bool is_majority(Mask mask) { return std::popcount(mask) >= static_cast<int>(kQuorum); }
inline std::string in_words(Mask mask) {
  std::string out = "servers";
  for (const unsigned node : members(mask)) out += ' ' + std::to_string(node);
  return out;
}

/// What becomes of a server.
enum class Death {
  killed,   // the process: connections end, new ones are refused, data are lost
  stopped,  // SIGSTOP: connections stay, and nothing is answered
  cut,      // as killed for who comes through the proxy, but the data stay
  silent,   // as stopped for who comes through the proxy
};

class RedlockTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server is not installed";
    start(kServers);
  }
  void start(unsigned count, const RedisOptions& options = {}) {
    proxies.clear();
    servers.clear();
    while (servers.size() < count) servers.emplace_back(options);
  }
  void put_proxies() {
    for (const RedisServer& server : servers) proxies.emplace_back("127.0.0.1", server.port());
  }

  // --- clients

  static std::unique_ptr<Backend> open(Target target) {
    target.connect_timeout = Millis{5'000};
    auto backend = find_backend("redlock")->open(target, soon(), Cancel());
    if (backend) return std::move(*backend);
    ADD_FAILURE() << backend.error().message;
    return nullptr;
  }
  static std::unique_ptr<Backend> connect(const std::string& addresses,
                                          std::optional<std::string> prefix = {}) {
    const auto url = parse_url("redlock://" + addresses);
    return open({.url = url.value(), .prefix = std::move(prefix)});
  }
  /// The server that all clients ask first.
  unsigned first_asked() const {
    unsigned first = 0;
    for (unsigned node = 1; node < servers.size(); ++node) {
      const auto name = [&](unsigned its) { return std::to_string(servers[its].port()); };
      if (name(node) < name(first)) first = node;
    }
    return first;
  }
  /// Of servers or proxies.
  template <class Ports>
  static std::string addresses_of(const Ports& ports) {
    std::string out;
    for (const auto& port : ports) {
      out += (out.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port.port());
    }
    return out;
  }
  std::unique_ptr<Backend> client(std::optional<std::string> prefix = {}) const {
    return connect(addresses_of(servers), std::move(prefix));
  }
  std::unique_ptr<Backend> through_proxies() const { return connect(addresses_of(proxies)); }
  /// By EVALSHA only, from then on.
  void teach_scripts() {
    for (const RedisServer& server : servers) teach(server);
  }

  // --- what becomes of servers

  void strike(Mask mask, Death death) {
    for (const unsigned node : members(mask)) {
      if (death == Death::killed) servers[node].kill();
      if (death == Death::stopped) servers[node].pause();
      if (death == Death::silent) proxies[node].blackhole();
      if (death != Death::cut) continue;
      proxies[node].refuse();
      proxies[node].cut();
    }
  }
  void heal(Mask mask, Death death) {
    for (const unsigned node : members(mask)) {
      if (death == Death::killed) servers[node].start_again();
      if (death == Death::stopped) servers[node].resume();
      if (death == Death::killed || death == Death::stopped) continue;
      proxies[node].cut();
      proxies[node].pass();
    }
  }
  void flush(Mask mask) {
    for (const unsigned node : members(mask)) servers[node].command("FLUSHALL");
  }

  // --- what stands there

  static std::string lock_of(const std::string& key) { return "dlock:" + key; }
  static redis::Names names(const std::string& key) {
    return redis::names_of(redis::kDefaultPrefix, key);
  }
  Mask having(const std::string& name, Mask among = kEach) const {
    Mask out = 0;
    for (const unsigned node : members(among)) {
      if (servers[node].command("EXISTS", name) == "1") out |= 1U << node;
    }
    return out;
  }
  bool is_held_by(Mask nodes, const std::string& key, Mask among = kEach) const {
    return eventually([&] { return having(lock_of(key), among) == nodes; });
  }
  /// Another's lock, on some of the servers.
  void put_foreign(Mask mask, const std::string& key = "job", const std::string& ttl = "60000") {
    for (const unsigned node : members(mask)) {
      servers[node].command("SET", lock_of(key), "somebody else", "PX", ttl);
    }
  }
  std::uint64_t counter(unsigned node, const std::string& key = "job") const {
    const std::string text = servers[node].command("GET", names(key).counter);
    return text == "(nil)" ? 0 : std::stoull(text);
  }
  /// Of locks, records and waiters nothing is there, but marks of requests that were given up.
  bool only_counters_are_left(Mask among = kEach) const {
    std::string left;
    const bool gone = eventually([&] {
      left.clear();
      for (const unsigned node : members(among)) {
        std::istringstream names_there(servers[node].command("KEYS", "*"));
        for (std::string name; std::getline(names_there, name);) {
          const bool is_mark = name.find("}:revoked:") != std::string::npos ||
                               name.find("}:void:") != std::string::npos;
          if (!name.ends_with("}:fence") && !is_mark)
            left += " " + std::to_string(node) + ':' + name;
        }
      }
      return left.empty();
    });
    if (!gone) std::cerr << "LEFT BEHIND:" << left << '\n';
    return gone;
  }
  /// Once this has returned, nothing is under way between this client and its servers.
  static void let_finish(Backend& client) { inspect(client, "nothing"); }

  /// Asks again where too few servers answered in time, as the engine does: on a busy machine one
  /// that is well may take longer than 200 ms.
  static Result<void> renew_soon(Lease& lease) {
    Result<void> renewed;
    (void)eventually([&] {
      renewed = renew(lease);
      return renewed || renewed.error().code != Errc::unreachable;
    });
    return renewed;
  }

  /// That the message names the servers that are dead, and no others, but such as are late: on a
  /// busy machine one that is well may take longer than 200 ms.
  template <class Ports>
  static void expect_names(const Error& error, Mask dead, const Ports& ports) {
    EXPECT_EQ(error.code, Errc::unreachable) << error.message;
    int answered = static_cast<int>(kServers);
    for (const unsigned node : members(kEach)) {
      const std::string its = ':' + std::to_string(ports[node].port());
      const bool is_named = error.message.find(its) != std::string::npos;
      const bool is_late = error.message.find(its + ": no answer in time") != std::string::npos ||
                           error.message.find(its + ": still no answer") != std::string::npos;
      const bool is_dead = (dead >> node & 1U) != 0;
      EXPECT_TRUE(is_dead ? is_named : !is_named || is_late) << node << " in: " << error.message;
      if (is_named) --answered;
    }
    EXPECT_NE(error.message.find(std::to_string(answered) + " of 5 servers answered, 3 are needed"),
              std::string::npos)
        << error.message;
  }

  std::deque<RedisServer> servers;
  std::deque<Proxy> proxies;
};

/// For the reader of the test's output.
inline void report(const std::string& what, auto value, const std::string& unit = "ms") {
  std::cout << "[ measured ] " << what << ": " << value << ' ' << unit << '\n';
}
inline void report(const std::string& what, Millis value) { report(what, value.count()); }

}  // namespace dlock::test
