#include "backends/redis/redis_lease.hpp"

#include <sys/epoll.h>

#include <algorithm>

#include "backends/redis/quorum.hpp"
#include "backends/redis/record.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

// A subscription is a convenience: it must not hold up the renewals.
constexpr Millis kSubscribing{1'000};

// Also a refusal tells nothing of the lock: it may be ours all the same.
Error not_told(Error error) {
  if (error.code != Errc::cancelled) error.code = Errc::unreachable;
  return error;
}

class RedisLease final : public Lease {
 public:
  RedisLease(std::shared_ptr<Node> node, Grant grant)
      : node_(std::move(node)),
        grant_(std::move(grant)),
        valid_until_(trusted_until(grant_.asked, grant_.request.ttl)) {}

  std::optional<std::uint64_t> fence() const override {
    return grant_.fence == 0 ? std::nullopt : std::optional(grant_.fence);
  }
  Deadline valid_until() const override { return valid_until_; }
  Result<void> renew(Deadline deadline, Cancel cancel) override;
  int event_fd() override;
  Result<void> release(Deadline deadline, Cancel cancel) override;

 private:
  std::string record() const;
  void drain();
  void subscribe(Deadline deadline, Cancel cancel);
  Error lost(const std::string& why, const std::string& found) const;

  const std::shared_ptr<Node> node_;
  Grant grant_;
  Deadline valid_until_;
  Fd events_;  // an epoll instance: stays the same when the subscription's socket is another
};

std::string RedisLease::record() const {
  const Request& request = grant_.request;
  Record out{.owner = request.owner,
             .mode = request.mode,
             .slots = request.slots,
             .acquired_at = grant_.acquired_at,
             .ttl = request.ttl,
             .held = std::chrono::duration_cast<Millis>(Clock::now() - grant_.asked),
             .fence = fence()};
  return format_record(out);
}

Error RedisLease::lost(const std::string& why, const std::string& found) const {
  const std::string at = node_->address().shown + ": ";
  if (!why.empty()) {
    return {Errc::lost, at + util::quoted(grant_.request.key) + " was force-released by " +
                            util::printable(why)};
  }
  if (found == "none") {
    return {Errc::lost, at + "the lock is not there any more: it expired, was deleted, or the "
                             "server lost its data"};
  }
  return {Errc::lost, at + "somebody else holds it now"};
}

Result<void> RedisLease::renew(Deadline deadline, Cancel cancel) {
  drain();
  const Deadline asked = Clock::now();
  const auto answer = node_->extend(grant_.request, record(), deadline, cancel);
  if (!answer) return not_told(answer.error());
  if (!answer.value().ours) return lost(answer.value().why, answer.value().found);
  valid_until_ = trusted_until(asked, grant_.request.ttl);
  if (answer.value().was_endless) {
    util::log(util::Level::warning, node_->address().shown + ": somebody made " +
                                        util::quoted(grant_.request.key) +
                                        " last for ever (PERSIST); it has its ttl again");
  }
  if (events_ && !grant_.subscription) subscribe(deadline, cancel);
  return {};
}

void RedisLease::drain() {
  if (!grant_.subscription || grant_.subscription->read({})) return;
  grant_.subscription.reset();  // closed, and so out of the epoll set
}

void RedisLease::subscribe(Deadline deadline, Cancel cancel) {
  if (!grant_.subscription) {
    const Names names = node_->names(grant_.request.key);
    const Millis patience = std::min(kSubscribing, grant_.request.ttl / 10);
    auto subscription =
        Subscription::open(node_->address(), names.channels + grant_.request.owner.id,
                           std::min(deadline, after(Clock::now(), patience)), cancel);
    if (!subscription) {
      util::log(util::Level::detail, "a force-release will be noticed at the next renewal only: " +
                                         subscription.error().message);
      return;
    }
    grant_.subscription = std::move(*subscription);
  }
  epoll_event event{.events = EPOLLIN, .data = {}};
  epoll_ctl(events_.get(), EPOLL_CTL_ADD, grant_.subscription->fd(), &event);
}

int RedisLease::event_fd() {
  if (!events_) {
    events_.reset(epoll_create1(EPOLL_CLOEXEC));
    drain();
    if (events_) subscribe(kNever, Cancel());
  }
  return events_.get();
}

Result<void> RedisLease::release(Deadline deadline, Cancel cancel) {
  const auto answer = node_->remove(grant_.request, false, deadline, cancel);
  if (!answer) return not_told(answer.error());
  if (!answer.value().ours) return lost(answer.value().why, "none");
  return {};
}

}  // namespace

std::unique_ptr<Lease> make_lease(std::shared_ptr<Node> node, Grant grant) {
  return std::make_unique<RedisLease>(std::move(node), std::move(grant));
}

}  // namespace dlock::redis
