// Data that nobody should have put there, and servers that are none.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <thread>

#include "redis_fixture.hpp"
#include "support/reserved_port.hpp"

namespace dlock::test {
namespace {

class RedisHostile : public RedisTest {
 protected:
  const redis::Names names = redis::names_of(redis::kDefaultPrefix, "job");
};

TEST_F(RedisHostile, ARecordMayBeAnything) {
  std::string deep;
  for (int i = 0; i < 20'000; ++i) deep += "{\"a\":";
  const std::vector<std::string> records{
      "garbage",
      "{}",
      "[]",
      "null",
      "{\"id\":7}",
      "\x1b[31m\r\n\"",
      "\xff\xfe",
      deep,
      std::string(1'000'000, 'x'),
      "{\"id\":\"" + std::string(50'000, 'y') + "\"}",
      R"({"id":"x","mode":"slots","slots":-1,"ttl_ms":-9223372036854775808,"held_ms":1e300})"};
  auto lease = hold(*a, request("job"));
  for (const std::string& record : records) {
    server->command("SET", names.owner, record, "PX", "60000");
    EXPECT_EQ(inspect(*b, "job").holders.size(), 1u);
    EXPECT_TRUE(b->list("", soon()));
    EXPECT_EQ(code_of(b->acquire(request("job"), {.until = in(10)})), Errc::busy);
  }
  EXPECT_TRUE(renew(*lease));
  EXPECT_FALSE(inspect(*b, "job").holders.at(0).foreign);
  EXPECT_TRUE(release(*lease));
  lease = hold(*a, shared("job"));
  for (const std::string& record : records) {
    for (const std::string& field : {inspect(*b, "job").holders.at(0).owner.id, std::string("q")}) {
      server->command("HSET", names.owner, field, record);
    }
    EXPECT_EQ(inspect(*b, "job").holders.size(), 1u);
  }
  EXPECT_TRUE(renew(*lease));
  EXPECT_TRUE(release(*lease));
}

TEST_F(RedisHostile, AModeMayBeAnything) {
  for (const char* mode : {"", "q", "n", "n-1", "n99999999999999999999", "nnan", "x"}) {
    auto lease = hold(*a, shared("job"));
    ASSERT_TRUE(lease);
    server->command("HSET", names.owner, "@mode", mode);
    EXPECT_EQ(inspect(*b, "job").holders.size(), 1u) << mode;
    for (const Request& wanted : {request("job"), slots("job", 2)}) {
      const auto refused = try_once(*b, wanted);
      EXPECT_TRUE(!refused &&
                  (refused.error().code == Errc::busy || refused.error().code == Errc::conflict))
          << mode;
    }
    EXPECT_TRUE(renew(*lease)) << mode;
    EXPECT_TRUE(release(*lease)) << mode;
  }
}

TEST_F(RedisHostile, ACounterThatIsNoneLeavesTheLockWithoutAFence) {
  for (const std::string& value :
       {std::string("NaN"), std::string("9223372036854775807"), std::string("-5")}) {
    server->command("SET", names.counter, value);
    auto lease = hold(*a, request("job"));
    ASSERT_TRUE(lease) << value;
    EXPECT_FALSE(lease->fence()) << value;
    EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
    EXPECT_TRUE(renew(*lease));
    EXPECT_TRUE(release(*lease));
  }
  server->command("DEL", names.counter);
  server->command("RPUSH", names.counter, "x");
  EXPECT_TRUE(is_free_for(*a, request("job")));
}

TEST_F(RedisHostile, AQueueOfAnotherTypeIsAClearErrorAndNotALeak) {
  server->command("SET", names.queue, "x");
  auto lease = hasty()->acquire(request("job"), {.until = soon()});
  if (!lease) {
    EXPECT_NE(lease.error().message.find("WRONGTYPE"), std::string::npos) << lease.error().message;
  } else {
    EXPECT_TRUE(release(**lease));
  }
  lease = try_once(*a, request("job"));
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_TRUE(renew(**lease));
  if (auto released = release(**lease); !released) {
    EXPECT_EQ(release(**lease).error().code, Errc::lost);
  }
  EXPECT_EQ(server->command("EXISTS", names.lock), "0");
  const auto info = b->inspect("job", soon());
  if (!info) {
    EXPECT_NE(info.error().message.find("WRONGTYPE"), std::string::npos) << info.error().message;
  }
}

TEST_F(RedisHostile, AQueueFullOfStrangersIsEmptiedAndNotServed) {
  for (int i = 0; i < 3'000; i += 100) {
    std::vector<std::string> words{"ZADD", names.queue};
    for (int j = i; j < i + 100; ++j) words.insert(words.end(), {"1", "x:" + std::to_string(j)});
    server->run(words);
  }
  EXPECT_LT(time_of([&] { EXPECT_TRUE(is_free_for(*a, request("job"))); }), here(Millis{1'000}));
  auto lease = hold(*a, request("job"));
  EXPECT_TRUE(inspect(*b, "job").waiters->empty());
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(only_the_counter_is_left());
}

// --- what is no Redis server

class FakeServer {
 public:
  /// Sends `once` on each connection, and then `forever` again and again.
  FakeServer(std::string once, std::string forever)
      : FakeServer(std::move(once), std::move(forever), {}) {}
  /// Sends the next of `replies` for each request, and begins again after the last one.
  explicit FakeServer(std::vector<std::string> replies) : FakeServer("", "", std::move(replies)) {}
  ~FakeServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;
  int port() const { return port_.port(); }

 private:
  FakeServer(std::string once, std::string forever, std::vector<std::string> replies)
      : once_(std::move(once)),
        forever_(std::move(forever)),
        replies_(std::move(replies)),
        thread_([this] { serve(); }) {}

  void serve() {
    for (;;) {
      const Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client) return;
      std::array<char, 4096> request;
      if (::recv(client.get(), request.data(), request.size(), 0) <= 0) continue;
      if (!say(client, once_)) continue;
      for (std::size_t i = 0; !replies_.empty(); ++i) {
        if (!say(client, replies_[i % replies_.size()])) break;
        if (::recv(client.get(), request.data(), request.size(), 0) <= 0) break;
      }
      if (forever_.empty()) (void)::recv(client.get(), request.data(), request.size(), 0);
      while (!forever_.empty() && say(client, forever_)) {
      }
    }
  }
  static bool say(const Fd& fd, std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  const std::string once_, forever_;
  const std::vector<std::string> replies_;
  ReservedPort port_;
  const Fd& listener_ = port_.listen();
  std::thread thread_;
};

// A sanitizer keeps what was freed for a while (ASan 256 MiB of it), shadows what is in use, and
// looks at each byte that is read.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr long kLittleMemoryKb = 1'000'000;
constexpr Millis kSoon{30'000};
#else
constexpr long kLittleMemoryKb = 100'000;
constexpr Millis kSoon{6'000};
#endif

long most_memory_kb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(RedisImpostor, WhateverAnswersInsteadEndsInAnErrorSoonAndInLittleMemory) {
  if (find_backend("redis")->open == nullptr) GTEST_SKIP() << "built without redis";
  std::string nested;
  for (int i = 0; i < 1'000'000; ++i) nested += "*1\r\n";
  const std::string block(64 * 1024, 'x');
  struct Case {
    std::string once;
    std::string forever;
  };
  const std::vector<Case> cases{{"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", ""},
                                {"SSH-2.0-OpenSSH_9.2\r\n", ""},
                                {std::string("\0\0\0\0", 4), ""},
                                {"$2147483647\r\n", block},
                                {"$9223372036854775807\r\n", block},
                                {"$-2\r\n", ""},
                                {"*2147483647\r\n", ":1\r\n"},
                                {"*9223372036854775807\r\n", ""},
                                {"*-5\r\n", ""},
                                {"*1000000\r\n", ":1\r\n"},
                                {"", "*100000\r\n"},
                                {nested, ""},
                                {"+", block},
                                {"-", block},
                                {":99999999999999999999999\r\n", ""},
                                {"%1\r\n+a\r\n+b\r\n", ""},
                                {"(12345678901234567890\r\n", ""}};
  const long before = most_memory_kb();
  for (const Case& one : cases) {
    const FakeServer fake(one.once, one.forever);
    auto client = connect_redis(fake.port(), {}, Millis{400});
    const auto took = time_of([&] {
      const auto lease = try_once(*client, request("job"));
      EXPECT_TRUE(code_of(lease) == Errc::unreachable) << one.once.substr(0, 20);
      EXPECT_FALSE(client->inspect("job", in(400))) << one.once.substr(0, 20);
      EXPECT_FALSE(client->list("", in(400))) << one.once.substr(0, 20);
    });
    EXPECT_LT(took, here(kSoon)) << one.once.substr(0, 20);
  }
  EXPECT_LT(most_memory_kb() - before, kLittleMemoryKb);
}

TEST(RedisImpostor, RepliesOfTheWrongShapeAreErrors) {
  if (find_backend("redis")->open == nullptr) GTEST_SKIP() << "built without redis";
  const auto is_error = [](const auto& result) {
    return !result && result.error().code == Errc::unreachable;
  };
  for (const std::string answer :
       {"+OK\r\n", ":1\r\n", "$-1\r\n", "*0\r\n", "*1\r\n*1\r\n:1\r\n", "*2\r\n:0\r\n:1\r\n",
        "*-1\r\n", "*1\r\n$1\r\n7\r\n", "*2\r\n$1\r\n7\r\n:0\r\n", "*2\r\n:0\r\n*0\r\n",
        "*2\r\n$1\r\n7\r\n*0\r\n", "*2\r\n$1\r\n0\r\n*1\r\n$3\r\njob\r\n"}) {
    const FakeServer fake(answer, answer);
    auto client = connect_redis(fake.port(), {}, Millis{400});
    EXPECT_TRUE(is_error(try_once(*client, request("job")))) << answer;
    EXPECT_TRUE(is_error(client->inspect("job", in(400)))) << answer;
    EXPECT_TRUE(is_error(client->list("", in(400)))) << answer;
    if (answer == ":1\r\n") continue;  // "it is broken now", if that was asked
    EXPECT_TRUE(is_error(client->force_release("job", "id", {"test"}, in(400)))) << answer;
  }
}

TEST(RedisImpostor, AScanWhoseCursorsRepeatIsAnError) {
  if (find_backend("redis")->open == nullptr) GTEST_SKIP() << "built without redis";
  const auto page = [](const std::string& cursor) {  // of the locks, and of the queues
    const std::string one = "*2\r\n$1\r\n" + cursor + "\r\n*1\r\n$9\r\ndlock:job\r\n";
    return one + one;
  };
  for (const auto& pages : {std::vector{page("1")}, std::vector{page("1"), page("2")},
                            std::vector{page("1"), page("2"), page("3")}}) {
    const FakeServer fake(pages);
    const auto found = connect_redis(fake.port())->list("", in(2'000));
    ASSERT_FALSE(found);
    EXPECT_NE(found.error().message.find("unexpected reply"), std::string::npos)
        << found.error().message;
  }
}

}  // namespace
}  // namespace dlock::test
