// Outages: what acquire() does while the service does not answer.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <thread>

#include "client.hpp"
#include "fixtures.hpp"

namespace dlock::test {
namespace {

// An outage is longer than the connect timeout, or it could be taken for a slow answer.
constexpr Millis kConnectTimeout{500};
constexpr Millis kOutage{1'500};
// From the end of an outage to the next try: the longest pause, and what a busy machine needs.
constexpr Millis kBackAgain{10'000};

class Patience : public testing::TestWithParam<ServiceKind> {
 protected:
  void stop() {
    for (TestServer* server : service->servers()) server->kill();
  }
  void start_again() {
    for (TestServer* server : service->servers()) server->start_again();
  }
  std::unique_ptr<Backend> connect(Millis timeout = kConnectTimeout) {
    return service->connect(timeout);
  }
  // What the holder has lost in the outage, it may only notice by this.
  static void give_up(Lease& lease) {
    for (int tries = 0; tries < 10; ++tries) {
      const auto done = lease.release(in(2'000), Cancel());
      if (done || done.error().code != Errc::unreachable) return;
    }
  }

  std::unique_ptr<Service> service = GetParam().start();
  std::unique_ptr<Backend> holding = connect(kPatience);
  std::unique_ptr<Lease> lease;
};

TEST_P(Patience, AWaiterWaitsUntilTheServiceIsBack) {
  ASSERT_TRUE(lease = hold(*holding, request("job")));
  Waiting waiter(connect(), request("job"));
  ASSERT_TRUE(waiter.blocked());
  stop();
  EXPECT_FALSE(waiter.done(static_cast<int>(kOutage.count())));
  start_again();
  give_up(*lease);
  lease.reset();
  EXPECT_LT(time_of([&] { EXPECT_TRUE(waiter.lease()); }), here(kBackAgain));
}

TEST_P(Patience, AWaitThatIsOverEndsAnOutageToo) {
  ASSERT_TRUE(lease = hold(*holding, request("job")));
  constexpr int kWait = 2'000;
  const Deadline begun = Clock::now();
  Waiting waiter(connect(), request("job"), in(kWait));
  ASSERT_TRUE(waiter.blocked());
  stop();
  const auto result = waiter.result();
  const Deadline ended = Clock::now();
  EXPECT_EQ(code_of(result), Errc::unreachable);
  EXPECT_GE(ended - begun, Millis{kWait - 100});
  EXPECT_LT(ended - begun, Millis{kWait} + here(Millis{1'500}));
}

TEST_P(Patience, AServiceThatStartsIsWaitedForAtFirstContact) {
  stop();
  Waiting waiter(connect(kPatience), request("job"));
  EXPECT_FALSE(waiter.done(500));
  start_again();
  EXPECT_LT(time_of([&] { EXPECT_TRUE(waiter.lease()); }), here(kBackAgain));
}

TEST_P(Patience, AtFirstContactNobodyWaitsLongerThanTheConnectTimeout) {
  stop();
  auto client = connect(kOutage);
  const auto took = [&](const Wait& wait) {
    return time_of(
        [&] { EXPECT_EQ(code_of(client->acquire(request("job"), wait)), Errc::unreachable); });
  };
  const Millis patient = took({});
  EXPECT_GE(patient, kOutage - Millis{100});
  EXPECT_LT(patient, kOutage + here(Millis{1'000}));
  EXPECT_LT(took({.until = in(300)}), here(Millis{900}));
  EXPECT_LT(took({.until = Deadline{}}), here(Millis{300}));
}

// A server that is stopped accepts connections, and says nothing.
TEST_P(Patience, ASilentServiceIsNotWaitedForLongerThanTheWait) {
  for (TestServer* server : service->servers()) server->pause();
  auto client = connect(Millis{15'000});
  const auto took = time_of([&] {
    EXPECT_EQ(code_of(client->acquire(request("job"), {.until = in(300)})), Errc::unreachable);
  });
  EXPECT_LT(took, here(Millis{4'000}));
  for (TestServer* server : service->servers()) server->resume();
}

TEST_P(Patience, AWaitThatEndsInSilenceIsNoBusyLock) {
  if (std::string_view(GetParam().name) == "redlock") return;  // one of its servers tells nothing
  ASSERT_TRUE(lease = hold(*holding, request("job")));
  Waiting waiter(connect(), request("job"), in(1'500));
  ASSERT_TRUE(waiter.blocked());
  for (TestServer* server : service->servers()) server->pause();
  EXPECT_EQ(code_of(waiter.result()), Errc::unreachable);
  for (TestServer* server : service->servers()) server->resume();
}

TEST_P(Patience, AWaiterStopsAtOnceInAnOutageToo) {
  ASSERT_TRUE(lease = hold(*holding, request("job")));
  Waiting waiter(connect(), request("job"));
  ASSERT_TRUE(waiter.blocked());
  stop();
  EXPECT_FALSE(waiter.done(static_cast<int>(kOutage.count())));
  waiter.cancel();
  EXPECT_LT(time_of([&] { EXPECT_EQ(code_of(waiter.result()), Errc::cancelled); }),
            here(kConnectTimeout + Millis{1'000}));
}

// Accepts connections, closes them, and records when.
class Doorkeeper {
 public:
  explicit Doorkeeper(const std::vector<TestServer*>& servers) {
    for (const TestServer* server : servers) listen(server->port());
    thread_ = std::thread([this] { run(); });
  }
  ~Doorkeeper() { stop(); }
  void stop() {
    if (!thread_.joinable()) return;
    eventfd_write(stop_.get(), 1);
    thread_.join();
    listeners_.clear();
  }
  /// After stop().
  std::size_t most_within(Millis window) const {
    std::size_t most = 0;
    for (auto first = calls_.begin(), last = first; last != calls_.end(); ++last) {
      while (*last - *first > window) ++first;
      most = std::max(most, static_cast<std::size_t>(last - first) + 1);
    }
    return most;
  }
  std::size_t count() const { return calls_.size(); }

 private:
  void listen(int port) {
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd.get(), 1'024), 0);
    listeners_.push_back(std::move(fd));
  }
  void run() {
    std::vector<pollfd> fds{{stop_.get(), POLLIN, 0}};
    for (const Fd& listener : listeners_) fds.push_back({listener.get(), POLLIN, 0});
    while (::poll(fds.data(), fds.size(), -1) >= 0 && fds[0].revents == 0) {
      for (const Fd& listener : listeners_) {
        while (const Fd caller{::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)}) {
          calls_.push_back(Clock::now());
        }
      }
    }
  }

  Fd stop_{eventfd(0, EFD_CLOEXEC)};
  std::vector<Fd> listeners_;
  std::vector<Deadline> calls_;
  std::thread thread_;
};

TEST_P(Patience, ManyWaitersDoNotComeBackAtOneInstant) {
  constexpr int kWaiters = 100;
  ASSERT_TRUE(lease = hold(*holding, request("job")));
  std::vector<std::unique_ptr<Waiting>> waiters;
  for (int i = 0; i < kWaiters; ++i) {
    waiters.push_back(std::make_unique<Waiting>(connect(kPatience), request("job")));
  }
  for (auto& waiter : waiters) ASSERT_TRUE(waiter->blocked());
  stop();
  Doorkeeper doorkeeper(service->servers());
  std::this_thread::sleep_for(kOutage);
  doorkeeper.stop();
  EXPECT_GE(doorkeeper.count(), std::size_t{kWaiters}) << "nobody has tried again";
  // At one instant it would be a third: each has tried three times or so.
  EXPECT_LE(doorkeeper.most_within(Millis{50}), doorkeeper.count() / 4);
  for (auto& waiter : waiters) waiter->cancel();
}

INSTANTIATE_TEST_SUITE_P(, Patience, testing::ValuesIn(server_kinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace dlock::test
