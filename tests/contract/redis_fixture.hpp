// What the tests of the Redis backend share: a server, clients, and somebody who listens in.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "backends/redis/names.hpp"
#include "backends/redis/scripts.hpp"
#include "client.hpp"
#include "support/proxy/proxy.hpp"
#include "support/redis_server.hpp"
#include "support/test_registry.hpp"
#include "util/poll.hpp"

namespace dlock::test {

/// A client with settings that a URL does not have.
inline std::unique_ptr<Backend> connect_redis(int port, std::optional<std::string> prefix = {},
                                              Millis patience = Millis{5'000},
                                              const std::string& user_info = {}) {
  const auto url = parse_url("redis://" + user_info + "127.0.0.1:" + std::to_string(port));
  auto backend = find_backend("redis")->open(
      {.url = url.value(), .prefix = std::move(prefix), .connect_timeout = patience}, soon(),
      Cancel());
  if (backend) return std::move(*backend);
  ADD_FAILURE() << backend.error().message;
  return nullptr;
}

/// A connection on which anything may be said, and which stays open.
class RawClient {
 public:
  explicit RawClient(const RedisServer& server)
      : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    server.socket_path().copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  void send(const std::string& line) { EXPECT_TRUE(util::write_all(fd_.get(), line + "\r\n")); }
  /// All that came, up to and with the first `mark` that was not read yet.
  std::string read_until(const std::string& mark) {
    std::array<char, 65'536> buffer;
    std::size_t at;
    while ((at = text_.find(mark)) == std::string::npos) {
      const bool readable = util::wait_readable(fd_.get(), soon());
      const ssize_t got = readable ? ::read(fd_.get(), buffer.data(), buffer.size()) : 0;
      if (got <= 0) {
        ADD_FAILURE() << "never heard " << mark;
        return {};
      }
      text_.append(buffer.data(), static_cast<std::size_t>(got));
    }
    std::string out = text_.substr(0, at + mark.size());
    text_.erase(0, at + mark.size());
    return out;
  }

 private:
  Fd fd_;
  std::string text_;
};

/// What the server is asked over TCP: the words of the tests themselves come by its unix socket.
class Monitor {
 public:
  explicit Monitor(const RedisServer& server) : server_(server), client_(server) {
    client_.send("MONITOR");
    client_.read_until("+OK\r\n");
  }
  struct Asked {
    std::string client;
    std::string command;
  };
  /// Since the last call; what scripts do is not in it.
  std::vector<Asked> asked() {
    const std::string mark = "mark" + std::to_string(++marks_);
    server_.command("ECHO", mark);
    const std::string text = client_.read_until(mark + "\"\r\n");
    std::vector<Asked> out;
    for (auto at = text.find(" 127.0.0.1:"); at != std::string::npos;
         at = text.find(" 127.0.0.1:", at + 1)) {
      const auto quote = text.find("] \"", at);
      out.push_back({text.substr(at + 1, quote - at - 1),
                     text.substr(quote + 3, text.find('"', quote + 3) - quote - 3)});
    }
    return out;
  }
  std::vector<std::string> commands() {
    std::vector<std::string> out;
    for (const Asked& one : asked()) out.push_back(one.command);
    return out;
  }

 private:
  const RedisServer& server_;
  RawClient client_;
  int marks_ = 0;
};

/// The record of a waiter, as far as the scripts look at it.
inline std::string waiter_record(const std::string& id, const std::string& mode = "exclusive",
                                 unsigned slots = 1) {
  return R"({"id":")" + id + R"(","mode":")" + mode + R"(","slots":)" + std::to_string(slots) + '}';
}

/// The id of a waiter of the tests.
inline std::string waiter_id(unsigned number) {
  std::string out(32, '0');
  const std::string digits = std::to_string(number);
  return out.replace(out.size() - digits.size(), digits.size(), digits);
}

/// In the queue of `key` and connected, but it never does what it is called for: it was stopped.
class Sleeper {
 public:
  Sleeper(const RedisServer& server, const std::string& key, const std::string& letter,
          const std::string& lives_ms = "5000", const std::string& id = waiter_id(0))
      : client_(server) {
    const auto names = redis::names_of(redis::kDefaultPrefix, key);
    client_.send("SUBSCRIBE " + names.channels + id);
    client_.read_until(":1\r\n");
    server.command("SET", names.waiter + id, waiter_record(id), "PX", lives_ms);
    server.command("ZADD", names.queue, "1", letter + ":" + id);
  }
  void wait_for_call() { client_.read_until("go\r\n"); }

 private:
  RawClient client_;
};

/// The least that dlock-redis(7) may tell an administrator to allow.
inline constexpr std::array kRights{"on",
                                    ">pw",
                                    "~dlock:*",
                                    "~{dlock:*",
                                    "resetchannels",
                                    "&{dlock:*",
                                    "&__redis__:invalidate",
                                    "-@all",
                                    "+eval",
                                    "+evalsha",
                                    "+time",
                                    "+type",
                                    "+get",
                                    "+set",
                                    "+del",
                                    "+incr",
                                    "+exists",
                                    "+pttl",
                                    "+pexpire",
                                    "+pexpireat",
                                    "+zadd",
                                    "+zrem",
                                    "+zrange",
                                    "+zrank",
                                    "+zscore",
                                    "+zcard",
                                    "+zrangebyscore",
                                    "+hset",
                                    "+hget",
                                    "+hdel",
                                    "+hlen",
                                    "+hexists",
                                    "+hscan",
                                    "+getrange",
                                    "+scan",
                                    "+publish",
                                    "+subscribe",
                                    "+pubsub|numsub",
                                    "+client|id",
                                    "+client|tracking"};

/// ACL SETUSER with no more than that.
inline std::vector<std::string> user_with_few_rights(const std::string& name) {
  std::vector<std::string> words{"ACL", "SETUSER", name};
  words.insert(words.end(), kRights.begin(), kRights.end());
  return words;
}

/// So that it is asked by EVALSHA only.
inline void teach(const RedisServer& server) {
  for (const redis::Script* script :
       {&redis::kAsk, &redis::kBreak, &redis::kComplete, &redis::kLeave, &redis::kLook,
        &redis::kRenew, &redis::kVote}) {
    server.command("SCRIPT", "LOAD", std::string(script->text));
  }
}

/// A request that has to wait while `held` is granted.
inline Request rival_of(const Request& held) {
  return held.mode == Mode::slots ? slots(held.key, held.slots) : request(held.key);
}

/// As `dlock acquire` takes it, for `ttl`: no process keeps it.
inline Request unkept(Request wanted, Millis ttl = Millis{60'000}) {
  wanted.ttl = ttl;
  wanted.owner.pid = 0;
  wanted.owner.kind = Owner::Kind::acquire;
  wanted.owner.lease = ttl;
  return wanted;
}

/// The lease of `id`, or of the waiter of that id, picked up from what this client sees.
inline LeaseResult resume(Backend& backend, const std::string& id, Millis ttl = Millis{600'000}) {
  const LockInfo lock = inspect(backend, "job");
  for (const auto& holder : lock.holders) {
    if (holder.owner.id.starts_with(id)) return backend.resume(lock, holder, ttl, soon());
  }
  return Error{Errc::busy, "is not shown"};
}

/// The same; null, and a test failure, if there is none.
inline std::unique_ptr<Lease> pick_up(Backend& backend, const std::string& id,
                                      Millis ttl = Millis{600'000}) {
  auto lease = resume(backend, id, ttl);
  if (lease) return std::move(*lease);
  ADD_FAILURE() << lease.error().message;
  return nullptr;
}

class RedisTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server is not installed";
    start();
  }
  void start(RedisOptions options = {}) {
    a.reset();
    b.reset();
    server.reset();
    server.emplace(std::move(options));
    a = client();
    b = client();
  }
  std::unique_ptr<Backend> client() const { return connect_redis(server->port()); }
  /// Gives a server up soon.
  std::unique_ptr<Backend> hasty(int ms = 300) const {
    return connect_redis(server->port(), {}, Millis{ms});
  }
  void teach_scripts() { teach(*server); }
  bool waiters_are(std::size_t count, const std::string& key = "job") {
    return eventually([&] { return inspect(*b, key).waiters->size() == count; });
  }
  /// Of all that may be left of a lock, the counter alone, and marks of requests that were given
  /// up.
  bool only_the_counter_is_left(const std::string& key = "job") {
    const auto names = redis::names_of(redis::kDefaultPrefix, key);
    return eventually([&] {
      std::istringstream there(server->command("KEYS", "*"));
      bool counter = false;
      for (std::string name; std::getline(there, name);) {
        if (name == names.counter) {
          counter = true;
        } else if (!name.starts_with(names.revoked) && !name.starts_with(names.given_up)) {
          return false;
        }
      }
      return counter;
    });
  }

  std::optional<RedisServer> server;
  std::unique_ptr<Backend> a;
  std::unique_ptr<Backend> b;
};

}  // namespace dlock::test
