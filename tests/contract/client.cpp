#include "client.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <stdexcept>
#include <thread>

#include "util/host.hpp"
#include "util/random_id.hpp"

namespace dlock::test {

Request request(const std::string& key, Mode mode, unsigned slots, Millis ttl) {
  Request out{.key = key, .mode = mode, .slots = slots, .ttl = ttl};
  out.owner = {.id = util::random_id(),
               .host = util::host_name(),
               .pid = getpid(),
               .user = util::user_name(),
               .command = "./contract test"};
  return out;
}

LeaseResult try_once(Backend& backend, const Request& request) {
  return backend.acquire(request, {.until = Deadline{}});
}

std::unique_ptr<Lease> hold(Backend& backend, const Request& request) {
  auto lease = backend.acquire(request, {.until = soon()});
  if (lease) return std::move(*lease);
  ADD_FAILURE() << lease.error().message;
  return nullptr;
}

std::unique_ptr<Lease> begin(Backend& backend, const Request& wanted) {
  auto lease = hold(backend, wanted);
  if (!lease) return nullptr;
  const auto ready = backend.prepare_marks(wanted.key, soon());
  EXPECT_TRUE(ready) << ready.error().message;
  return lease;
}

std::optional<Mark> find(Backend& backend, const std::string& key, const std::string& period) {
  auto found = backend.find_mark({key, period}, soon());
  EXPECT_TRUE(found) << found.error().message;
  return found ? std::move(*found) : std::nullopt;
}

bool is_free_for(Backend& backend, const Request& request) {
  auto lease = try_once(backend, request);
  const Result<void> released = lease ? release(**lease) : Result<void>(lease.error());
  if (!released) std::cerr << (lease ? "not released: " : "") << released.error().message << '\n';
  return released.has_value();
}

Errc code_of(const LeaseResult& result) {
  if (!result) return result.error().code;
  ADD_FAILURE() << "granted: an OVERLAP if the lock is held";
  return Errc::invalid;
}

Errc code_of(const Result<void>& result) {
  if (!result) return result.error().code;
  ADD_FAILURE() << "it went well";
  return Errc::invalid;
}

Millis here(Millis bound) {
  constexpr double kSleep = 0.01;
  double longest = kSleep;
  for (int i = 0; i < 3; ++i) {
    const Deadline before = Clock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(kSleep));
    longest = std::max(longest, std::chrono::duration<double>(Clock::now() - before).count());
  }
  const double factor = std::min(longest / kSleep, 3.0);
  return Millis{static_cast<Millis::rep>(static_cast<double>(bound.count()) * factor)};
}

int listen_to(Lease& lease) {
  lease.subscribe();
  EXPECT_TRUE(renew(lease));
  return lease.event_fd();
}

Result<void> renew(Lease& lease) { return lease.renew(soon(), Cancel()); }
Result<void> release(Lease& lease) { return lease.release(soon(), Cancel()); }

LockInfo inspect(Backend& backend, const std::string& key) {
  auto info = backend.inspect(key, soon());
  if (info) return std::move(*info);
  throw std::runtime_error("cannot inspect " + key + ": " + info.error().message);
}

CancelSource::CancelSource() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), 02000000 /* O_CLOEXEC */) != 0) std::abort();
  read_.reset(ends[0]);
  write_.reset(ends[1]);
}

void CancelSource::fire() { [[maybe_unused]] const ssize_t wrote = ::write(write_.get(), "", 1); }

Waiting::Waiting(std::unique_ptr<Backend> backend, Request request, Deadline until)
    : backend_(std::move(backend)),
      request_(std::move(request)),
      is_blocked_(blocked_.get_future()),
      outcome_(std::async(std::launch::async, [this, until] {
        bool told = false;
        const auto tell = [&](const LockInfo&) {
          if (!told) blocked_.set_value();
          told = true;
        };
        return backend_->acquire(request_, {until, source_.cancel(), tell});
      })) {}

Waiting::~Waiting() { cancel(); }

bool Waiting::blocked() {
  if (is_blocked_.wait_for(kPatience) == std::future_status::ready) return true;
  if (!done(0)) {
    ADD_FAILURE() << "has neither acquired the lock nor found it held";
  } else if (const auto lease = outcome_.get()) {
    ADD_FAILURE() << "has acquired the lock";
  } else {
    ADD_FAILURE() << lease.error().message;
  }
  return false;
}

bool Waiting::done(int within_ms) {
  return outcome_.wait_for(Millis{within_ms}) == std::future_status::ready;
}

LeaseResult Waiting::result() {
  if (!done(static_cast<int>(kPatience.count()))) {
    ADD_FAILURE() << "still waiting";
    cancel();
  }
  return outcome_.get();
}

std::unique_ptr<Lease> Waiting::lease() {
  auto lease = result();
  if (lease) return std::move(*lease);
  ADD_FAILURE() << lease.error().message;
  return nullptr;
}

Breaking::Breaking(std::unique_ptr<Backend> backend, std::string owner_id, std::string why,
                   bool given_back)
    : backend_(std::move(backend)), outcome_(std::async(std::launch::async, [=, this] {
        return backend_->force_release("job", owner_id, {why, given_back}, soon());
      })) {}

bool Breaking::broken() {
  const auto outcome = outcome_.get();
  if (outcome) return outcome.value();
  ADD_FAILURE() << outcome.error().message;
  return false;
}

bool break_lock(std::unique_ptr<Backend> backend, Lease& lease) {
  Breaking breaking(std::move(backend), lease.owner_id());
  EXPECT_TRUE(eventually([&] { return !renew(lease); }));
  EXPECT_EQ(code_of(release(lease)), Errc::lost);
  return breaking.broken();
}

bool eventually(const std::function<bool()>& condition) {
  for (const Deadline end = soon(); Clock::now() < end;) {
    if (condition()) return true;
    std::this_thread::sleep_for(Millis{2});
  }
  return false;
}

}  // namespace dlock::test
