// The servers and the faults that the other tests rely on do what they say.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>

#include "support/fake_clock.hpp"
#include "support/proxy/control.hpp"
#include "support/proxy/proxy.hpp"
#include "support/redis_server.hpp"
#include "util/fd.hpp"
#include "util/poll.hpp"

namespace dlock::test {
namespace {

constexpr Millis kLong{10'000};
constexpr Millis kShort{30};

Deadline in(Millis time) { return after(Clock::now(), time); }

class Client {
 public:
  explicit Client(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<in_port_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  bool connected() const { return connected_; }
  void say(const std::string& text) const {
    EXPECT_GT(::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL), 0);
  }
  // What one read gives, "end", "reset", or "silence" if there is nothing to be read.
  std::string hear(Millis patience = kLong) const {
    if (!util::wait_readable(fd_.get(), in(patience))) return "silence";
    std::array<char, 1'000> buffer;
    const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (got < 0) return errno == ECONNRESET ? "reset" : "error";
    return got == 0 ? "end" : std::string(buffer.data(), static_cast<std::size_t>(got));
  }
  std::string ask(const std::string& text) const {
    say(text + "\r\n");
    return hear();
  }

 private:
  Fd fd_;
  bool connected_;
};

template <typename Condition>
bool comes_true(Condition condition) {
  for (const Deadline end = in(kLong); Clock::now() < end; util::poll({}, in(Millis{1}))) {
    if (condition()) return true;
  }
  return false;
}

class SupportRedis : public testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server is not installed";
  }
};

class SupportProxy : public SupportRedis {
 protected:
  void SetUp() override {
    SupportRedis::SetUp();
    if (IsSkipped()) return;
    redis = std::make_unique<RedisServer>();
    proxy = std::make_unique<Proxy>("127.0.0.1", redis->port());
  }
  std::unique_ptr<RedisServer> redis;
  std::unique_ptr<Proxy> proxy;
};

TEST_F(SupportRedis, IsReadyOnItsPortAndItsSocket) {
  RedisServer one;
  RedisServer other;
  EXPECT_NE(one.port(), other.port());
  EXPECT_EQ(one.command("SET", "k", "a b"), "OK");
  EXPECT_EQ(Client(one.port()).ask("GET k"), "$3\r\na b\r\n");
  EXPECT_EQ(other.command("GET", "k"), "(nil)");
  EXPECT_EQ(one.command("RPUSH", "list", "1", "2"), "2");
  EXPECT_EQ(one.command("LRANGE", "list", "0", "-1"), "1\n2");
}

TEST_F(SupportRedis, ItsClockCanJump) {
  FakeClock clock;
  RedisServer redis({.clock = &clock});
  redis.command("SET", "k", "v", "PX", "30000");
  EXPECT_EQ(redis.command("GET", "k"), "v");
  clock.jump_monotonic(Millis{60'000});
  EXPECT_EQ(redis.command("GET", "k"), "v");
  clock.jump(Millis{60'000});
  EXPECT_EQ(redis.command("GET", "k"), "(nil)");
  redis.command("SET", "k", "v", "PX", "30000");
  clock.jump(Millis{-60'000});
  EXPECT_GT(std::stol(redis.command("PTTL", "k")), 80'000);
}

TEST_F(SupportProxy, PassesOnAndCounts) {
  const Client one(proxy->port());
  EXPECT_EQ(one.ask("SET k v"), "+OK\r\n");
  EXPECT_EQ(Client(proxy->port()).ask("GET k"), "$1\r\nv\r\n");
  EXPECT_EQ(proxy->connections(), 2);
  EXPECT_EQ(proxy->request_bytes(), 9U + 7U);
  EXPECT_TRUE(comes_true([&] { return proxy->open_connections() == 1; }));
}

TEST_F(SupportProxy, Delays) {
  const Client client(proxy->port());
  proxy->delay_replies(Millis{40});
  const Deadline start = Clock::now();
  EXPECT_EQ(client.ask("INCR k"), ":1\r\n");
  EXPECT_GE(Clock::now() - start, Millis{40});

  proxy->pass();
  proxy->delay_requests(Millis{40});
  client.say("INCR k\r\n");
  EXPECT_EQ(redis->command("GET", "k"), "1");
  EXPECT_EQ(client.hear(), ":2\r\n");
}

TEST_F(SupportProxy, HoldsRepliesUntilReleased) {
  const Client client(proxy->port());
  proxy->hold();
  client.say("INCR k\r\n");
  EXPECT_TRUE(comes_true([&] { return redis->command("GET", "k") == "1"; }));
  EXPECT_EQ(client.hear(kShort), "silence");
  proxy->release();
  EXPECT_EQ(client.hear(), ":1\r\n");
}

TEST_F(SupportProxy, DroppedRepliesLeaveTheConnectionHalfOpen) {
  const Client client(proxy->port());
  proxy->drop();
  client.say("INCR k\r\n");
  EXPECT_TRUE(comes_true([&] { return redis->command("GET", "k") == "1"; }));
  proxy->pass();
  client.say("PING\r\n");
  EXPECT_EQ(client.hear(kShort), "silence");
  EXPECT_EQ(Client(proxy->port()).ask("PING"), "+PONG\r\n");
}

TEST_F(SupportProxy, ABlackholeSwallowsTheEndOfTheServerToo) {
  const Client before(proxy->port());
  EXPECT_EQ(before.ask("PING"), "+PONG\r\n");
  proxy->blackhole();
  const Client client(proxy->port());
  EXPECT_TRUE(client.connected());
  client.say("INCR k\r\n");
  before.say("INCR k\r\n");
  redis->kill();
  EXPECT_EQ(client.hear(kShort), "silence");
  EXPECT_EQ(before.hear(kShort), "silence");
}

TEST_F(SupportProxy, TellsOfTheEndOfTheServer) {
  const Client client(proxy->port());
  EXPECT_EQ(client.ask("PING"), "+PONG\r\n");
  redis->kill();
  EXPECT_EQ(client.hear(), "end");
  EXPECT_EQ(Client(proxy->port()).hear(), "reset");
  redis->start_again();
  EXPECT_EQ(Client(proxy->port()).ask("PING"), "+PONG\r\n");
}

TEST_F(SupportProxy, RefusesAndCuts) {
  const Client one(proxy->port());
  EXPECT_EQ(one.ask("PING"), "+PONG\r\n");
  proxy->refuse();
  EXPECT_FALSE(Client(proxy->port()).connected());
  EXPECT_EQ(one.ask("PING"), "+PONG\r\n");
  proxy->cut();
  EXPECT_EQ(one.hear(), "reset");
  proxy->pass();
  const Client other(proxy->port());
  proxy->cut(Cut::fin);
  EXPECT_EQ(other.hear(), "end");
}

TEST_F(SupportProxy, LosesTheReplyToWhatWasCarriedOut) {
  const Client other(proxy->port());
  proxy->lose_reply_to("INCR", 2, 1);
  EXPECT_EQ(Client(proxy->port()).ask("INCR k"), ":1\r\n");
  EXPECT_EQ(Client(proxy->port()).ask("INCR k"), "reset");
  const Client split(proxy->port());
  split.say("IN");
  EXPECT_TRUE(comes_true([&] { return proxy->request_bytes() == 2 * 8 + 2; }));
  EXPECT_EQ(split.ask("CR k"), "reset");
  EXPECT_EQ(Client(proxy->port()).ask("INCR k"), ":4\r\n");
  EXPECT_EQ(other.ask("GET k"), "$1\r\n4\r\n");
  EXPECT_EQ(proxy->lost_replies(), 2);
  proxy->lose_reply_to("", -1);
  EXPECT_EQ(other.ask("PING"), "reset");
  EXPECT_EQ(Client(proxy->port()).ask("PING"), "reset");
}

TEST_F(SupportProxy, SendsRepliesInSmallPieces) {
  const Client client(proxy->port());
  proxy->chunk(1);
  EXPECT_TRUE(comes_true([&] {
    std::string reply = client.ask("ECHO abcdefghijklmnopqrst");
    int reads = 1;
    for (; reply.size() < 27; ++reads) reply += client.hear();
    EXPECT_EQ(reply, "$20\r\nabcdefghijklmnopqrst\r\n");
    return reads > 5;  // a busy machine joins some, or all
  }));
}

TEST_F(SupportProxy, IsControlledByLines) {
  const Client client(proxy->port());
  EXPECT_EQ(control(*proxy, "lose-reply-to INCR always"), "ok");
  EXPECT_EQ(client.ask("INCR k"), "reset");
  EXPECT_EQ(control(*proxy, "lost"), "1");
  EXPECT_EQ(control(*proxy, "pass"), "ok");
  EXPECT_EQ(control(*proxy, "delay 1"), "ok");
  EXPECT_EQ(control(*proxy, "connections"), "1");
  EXPECT_EQ(control(*proxy, "delay"), "error: a number is missing");
  EXPECT_EQ(control(*proxy, "fly"), "error: no command: fly");
}

}  // namespace
}  // namespace dlock::test
