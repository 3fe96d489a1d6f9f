#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include <filesystem>
#include <vector>

#include "backends/redis/dial.hpp"

namespace dlock::redis {
namespace {

// Far more than anything here takes, far less than a kernel tries for by itself.
constexpr Millis kAmple{10'000};

Deadline in(Millis duration) { return after(Clock::now(), duration); }

// A port of loopback that is ours; nobody answers there before listen().
struct Port {
  Fd fd;
  SocketAddress address;

  explicit Port(int family = AF_INET) : fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address.storage.ss_family = static_cast<sa_family_t>(family);
    if (family == AF_INET) {
      as<sockaddr_in>().sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else {
      as<sockaddr_in6>().sin6_addr = in6addr_loopback;
    }
    address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (::bind(fd.get(), generic(), address.length) != 0) fd.reset();
    ::getsockname(fd.get(), generic(), &address.length);
  }

  template <class T>
  T& as() {
    return reinterpret_cast<T&>(address.storage);
  }
  sockaddr* generic() { return &as<sockaddr>(); }
  std::uint16_t number() { return ntohs(as<sockaddr_in>().sin_port); }
  HostPort at(std::string host) { return {std::move(host), number()}; }

  Port& listen(int backlog = 8) {
    EXPECT_EQ(::listen(fd.get(), backlog), 0);
    return *this;
  }
  bool has_caller() {
    pollfd item{fd.get(), POLLIN, 0};
    return ::poll(&item, 1, 0) == 1;
  }
};

// A port that leaves its callers without an answer: its queue is full.
struct SilentPort : Port {
  std::vector<Fd> queue;

  SilentPort() {
    listen(0);
    for (bool full = false; !full && queue.size() < 20;) {
      queue.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      ::connect(queue.back().get(), generic(), address.length);
      pollfd item{queue.back().get(), POLLOUT, 0};
      full = ::poll(&item, 1, 200) == 0;
    }
  }
};

// Fires after a while, without a thread.
struct LateCancel {
  Fd timer{timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)};

  explicit LateCancel(Millis delay) {
    itimerspec spec{};
    spec.it_value.tv_nsec = std::chrono::nanoseconds(delay).count();
    timerfd_settime(timer.get(), 0, &spec, nullptr);
  }
  Cancel cancel() const { return Cancel(timer.get()); }
};

struct TempDir {
  std::string path = (std::filesystem::temp_directory_path() / "dlock-dial-XXXXXX").string();
  TempDir() { EXPECT_NE(mkdtemp(path.data()), nullptr); }
  ~TempDir() { std::filesystem::remove_all(path); }
};

Fd listen_unix(const std::string& path, int backlog) {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  EXPECT_EQ(::listen(fd.get(), backlog), 0);
  return fd;
}

void expect_error(const Result<Fd>& result, Errc code, const std::string& message) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, code) << result.error().message;
  EXPECT_EQ(result.error().message, message);
}

std::string why(const Result<Fd>& result) { return result ? "" : result.error().message; }

int option(const Fd& fd, int level, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  ::getsockopt(fd.get(), level, name, &value, &length);
  return value;
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(RedisDial, GivesASocketFitForAnEventLoop) {
  Port server;
  const auto fd = dial(server.listen().at("127.0.0.1"), in(kAmple), {});
  ASSERT_TRUE(fd) << why(fd);
  EXPECT_TRUE(server.has_caller());
  EXPECT_TRUE(::fcntl(fd.value().get(), F_GETFD) & FD_CLOEXEC);
  EXPECT_TRUE(::fcntl(fd.value().get(), F_GETFL) & O_NONBLOCK);
  EXPECT_EQ(option(fd.value(), IPPROTO_TCP, TCP_NODELAY), 1);
  EXPECT_EQ(option(fd.value(), SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option(fd.value(), IPPROTO_TCP, TCP_KEEPIDLE), 60);
  EXPECT_EQ(option(fd.value(), IPPROTO_TCP, TCP_KEEPINTVL), 20);
  EXPECT_EQ(option(fd.value(), IPPROTO_TCP, TCP_KEEPCNT), 3);
}

TEST(RedisDial, SaysThatNobodyListens) {
  Port closed;
  for (const char* host : {"127.0.0.1", "localhost"}) {
    expect_error(dial(closed.at(host), in(kAmple), {}), Errc::unreachable, "connection refused");
  }
}

TEST(RedisDial, KnowsLocalhostInBothFamilies) {
  Port four;
  four.listen();
  for (const char* name : {"localhost", "LocalHost", "localhost."}) {
    const auto fd = dial(four.at(name), in(kAmple), {});
    EXPECT_TRUE(fd) << why(fd);
  }
  Port six(AF_INET6);
  if (!six.fd) GTEST_SKIP() << "no IPv6 here";
  six.listen();
  for (const char* name : {"::1", "localhost"}) {
    const auto fd = dial(six.at(name), in(kAmple), {});
    EXPECT_TRUE(fd) << name << ": " << why(fd);
  }
}

TEST(RedisDial, AnUnknownNameIsAnErrorWithinTheDeadline) {
  const Deadline start = Clock::now();
  const auto fd = dial({"no.such.host.invalid", 6379}, in(Millis{2'000}), {});
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().code, Errc::unreachable) << fd.error().message;
  EXPECT_LT(Clock::now() - start, kAmple);
}

TEST(RedisDial, AnAddressIsNeverTakenForAName) {
  expect_error(dial({"fe80::1%no-such-link", 6379}, kNever, {}), Errc::unreachable,
               "no such address");
}

TEST(RedisDial, KeepsToTheDeadlineWithASilentServer) {
  SilentPort silent;
  const Deadline start = Clock::now();
  const auto fd = dial(silent.at("127.0.0.1"), in(Millis{300}), {});
  expect_error(fd, Errc::unreachable, "no answer within 300ms");
  EXPECT_GE(Clock::now() - start, Millis{299});
  EXPECT_LT(Clock::now() - start, kAmple);
  expect_error(dial(silent.at("127.0.0.1"), start, {}), Errc::unreachable, "no answer in time");
}

TEST(RedisDial, StopsWhenCancelled) {
  SilentPort silent;
  const Deadline start = Clock::now();
  const LateCancel late(Millis{50});
  expect_error(dial(silent.at("127.0.0.1"), kNever, late.cancel()), Errc::cancelled,
               "stopped connecting");
  EXPECT_LT(Clock::now() - start, kAmple);
}

TEST(RedisDial, StopsAskingTheNameServerWhenCancelled) {
  const Fd fired(eventfd(1, EFD_CLOEXEC));
  expect_error(dial({"no.such.host.invalid", 6379}, kNever, Cancel(fired.get())), Errc::cancelled,
               "stopped connecting");
}

TEST(RedisDial, ASilentAddressDoesNotHideALiveOne) {
  SilentPort silent;
  Port closed;
  Port live;
  live.listen();
  std::vector<SocketAddress> addresses{silent.address, closed.address, silent.address,
                                       live.address};
  (void)dial(live.at("127.0.0.1"), in(kAmple), {});  // what the first wait of a thread opens
  const std::size_t before = open_descriptors();
  const Deadline start = Clock::now();
  auto fd = connect_first(addresses, start, in(kAmple), {});
  ASSERT_TRUE(fd) << why(fd);
  EXPECT_LT(Clock::now() - start, kAmple);
  SocketAddress peer;
  peer.length = sizeof peer.storage;
  ::getpeername(fd->get(), reinterpret_cast<sockaddr*>(&peer.storage), &peer.length);
  EXPECT_EQ(reinterpret_cast<sockaddr_in&>(peer.storage).sin_port, htons(live.number()));
  fd->reset();
  EXPECT_EQ(open_descriptors(), before) << "the attempts that lost are closed";
}

TEST(RedisDial, OfSeveralErrorsTellsTheServersOwn) {
  Port closed;
  SocketAddress nowhere;  // a family that no kernel knows
  nowhere.storage.ss_family = 0x7FFF;
  nowhere.length = sizeof(sockaddr_in);
  const std::vector<SocketAddress> first{nowhere, closed.address};
  const std::vector<SocketAddress> last{closed.address, nowhere};
  for (const auto& addresses : {first, last}) {
    expect_error(connect_first(addresses, Clock::now(), in(kAmple), {}), Errc::unreachable,
                 "connection refused");
  }
}

TEST(RedisDialUnix, ConnectsOrSaysWhyNot) {
  const TempDir dir;
  const std::string path = dir.path + "/redis.sock";
  expect_error(dial_unix(path, in(kAmple), {}), Errc::unreachable, "no such socket");
  Fd server = listen_unix(path, 8);
  const auto fd = dial_unix(path, in(kAmple), {});
  ASSERT_TRUE(fd) << why(fd);
  EXPECT_TRUE(::fcntl(fd.value().get(), F_GETFD) & FD_CLOEXEC);
  EXPECT_TRUE(::fcntl(fd.value().get(), F_GETFL) & O_NONBLOCK);
  server.reset();
  expect_error(dial_unix(path, in(kAmple), {}), Errc::unreachable, "connection refused");
  expect_error(dial_unix("/" + std::string(107, 'x'), in(kAmple), {}), Errc::invalid,
               "the path of a socket cannot be longer than 107 bytes");
}

TEST(RedisDialUnix, WaitsForAFullQueueUntilTheDeadlineOrCancel) {
  const TempDir dir;
  const std::string path = dir.path + "/redis.sock";
  const Fd server = listen_unix(path, 0);
  std::vector<Fd> queue;
  while (queue.size() < 20) {
    auto fd = dial_unix(path, in(Millis{200}), {});
    if (!fd) break;
    queue.push_back(std::move(*fd));
  }
  ASSERT_LT(queue.size(), 20u);
  expect_error(dial_unix(path, in(Millis{100}), {}), Errc::unreachable, "no answer within 100ms");
  const LateCancel late(Millis{50});
  expect_error(dial_unix(path, kNever, late.cancel()), Errc::cancelled, "stopped connecting");
  ::close(::accept(server.get(), nullptr, nullptr));
  const auto fd = dial_unix(path, in(kAmple), {});
  EXPECT_TRUE(fd) << why(fd);
}

}  // namespace
}  // namespace dlock::redis
