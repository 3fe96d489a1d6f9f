// Short words for what the contract tests do.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "core/backend.hpp"
#include "util/fd.hpp"

namespace dlock::test {

using LeaseResult = Result<std::unique_ptr<Lease>>;

/// So long may a slow machine take; nothing waits for it when all is well.
inline constexpr Millis kPatience{20'000};
/// How many waiters a crowd has.
inline constexpr std::size_t kCrowd = 80;
inline Deadline soon() { return after(Clock::now(), kPatience); }
inline Deadline in(int ms) { return after(Clock::now(), Millis{ms}); }

Request request(const std::string& key, Mode mode = Mode::exclusive, unsigned slots = 1,
                Millis ttl = Millis{30'000});
inline Request shared(const std::string& key) { return request(key, Mode::shared); }
inline Request slots(const std::string& key, unsigned count) {
  return request(key, Mode::slots, count);
}

LeaseResult try_once(Backend& backend, const Request& request);
/// Held, or a test failure and null.
std::unique_ptr<Lease> hold(Backend& backend, const Request& request);
bool is_free_for(Backend& backend, const Request& request);
Errc code_of(const LeaseResult& result);
Errc code_of(const Result<void>& result);
Result<void> renew(Lease& lease);
/// As the keeper does: asks for news, and for what happened before.  The descriptor to wait for.
int listen_to(Lease& lease);
Result<void> release(Lease& lease);
/// Throws what the backend says if it cannot tell: such an answer has no waiters to look at.
LockInfo inspect(Backend& backend, const std::string& key);

/// A lease under which a job may run that is remembered; null, and a test failure, if there is
/// none.
std::unique_ptr<Lease> begin(Backend& backend, const Request& wanted = request("job"));
inline std::unique_ptr<Lease> begin(Backend& backend, const std::string& key) {
  return begin(backend, request(key));
}
/// The mark, if there is one; a test failure if that cannot be told.
std::optional<Mark> find(Backend& backend, const std::string& key = "job",
                         const std::string& period = "");

class CancelSource {
 public:
  CancelSource();
  void fire();
  Cancel cancel() const { return Cancel(read_.get()); }

 private:
  Fd read_, write_;
};

/// An acquire on a thread and a client of its own.
class Waiting {
 public:
  Waiting(std::unique_ptr<Backend> backend, Request request, Deadline until = kNever);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  void cancel() { source_.fire(); }
  /// Waits until it has found the lock held; false, and a test failure that says what it met, if it
  /// does not.
  bool blocked();
  bool done(int within_ms);
  LeaseResult result();
  std::unique_ptr<Lease> lease();

 private:
  std::unique_ptr<Backend> backend_;
  Request request_;
  CancelSource source_;
  std::promise<void> blocked_;
  std::future<void> is_blocked_;
  std::future<LeaseResult> outcome_;
};

/// An operator who breaks a lock, on a thread and a client of its own: where only the holder can
/// let go (Traits::EndsOn::process_exit), that waits for it.
class Breaking {
 public:
  Breaking(std::unique_ptr<Backend> backend, std::string owner_id, std::string why = "test",
           bool given_back = false);
  /// What force_release() said, when it is through.
  bool broken();

 private:
  std::unique_ptr<Backend> backend_;
  std::future<Result<bool>> outcome_;
};

/// Breaks the lock "job" while its keeper would learn of that and let go.
bool break_lock(std::unique_ptr<Backend> backend, Lease& lease);

/// What takes at most `bound` on an idle machine may take so long here: more, as a sleep of 10 ms
/// takes longer; three times as long at most.
Millis here(Millis bound);

/// How long `what` takes.
template <typename Function>
Millis time_of(const Function& what) {
  const Deadline before = Clock::now();
  what();
  return std::chrono::duration_cast<Millis>(Clock::now() - before);
}

/// Asks again and again: for conditions that nothing announces.
bool eventually(const std::function<bool()>& condition);

/// Does it again while it is not known whether it was done: a service that is back may need a
/// moment.
template <class Operation>
auto patiently(Operation operation) {
  auto result = operation();
  EXPECT_TRUE(eventually([&] {
    if (result || result.error().code != Errc::unreachable) return true;
    result = operation();
    return false;
  }));
  return result;
}

}  // namespace dlock::test
