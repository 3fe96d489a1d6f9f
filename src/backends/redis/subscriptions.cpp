#include "backends/redis/subscriptions.hpp"

#include <sys/epoll.h>

#include <algorithm>

#include "backends/redis/sentinel.hpp"
#include "util/log.hpp"

namespace dlock::redis {
namespace {

void watch_for_input(int events, int fd) {
  epoll_event event{.events = EPOLLIN, .data = {}};
  if (events >= 0) epoll_ctl(events, EPOLL_CTL_ADD, fd, &event);
}

constexpr Millis kTriesAgain{30'000};
constexpr unsigned kMostClosed = 4;     // at once, and in a row
constexpr Millis kLastsAtLeast{1'000};  // a subscription, or it is of no use

}  // namespace

void Subscriptions::open() {
  const std::lock_guard lock(mutex_);
  if (events_) return;
  events_.reset(epoll_create1(EPOLL_CLOEXEC));
  for (const OfOne& its : of_each_) {
    if (its.subscription) watch_for_input(events_.get(), its.subscription->fd());
  }
  for (const auto& its : to_sentinels_) watch_for_input(events_.get(), its->fd());
}

Subscriptions::State Subscriptions::at(unsigned server) const {
  const std::lock_guard lock(mutex_);
  const OfOne& its = of_each_[server];
  if (its.subscription) return State::subscribed;
  const bool is_refused =
      its.trouble && its.trouble->code != Errc::unreachable && its.trouble->code != Errc::cancelled;
  return is_refused ? State::refused : State::missing;
}

std::optional<Error> Subscriptions::trouble(unsigned server) const {
  const std::lock_guard lock(mutex_);
  return of_each_[server].trouble;
}

bool Subscriptions::all_have_trouble() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(of_each_, [](const OfOne& its) { return its.trouble.has_value(); });
}

bool Subscriptions::has_failed_lately(unsigned server) const {
  const std::lock_guard lock(mutex_);
  const OfOne& its = of_each_[server];
  return !its.subscription && its.trouble && since(its.tried_at) < kTriesAgain;
}

Result<void> Subscriptions::subscribe(unsigned server, const Address& address,
                                      const std::string& channel, Deadline deadline,
                                      Cancel cancel) {
  if (address.sentinels) {
    listen_to(address.sentinels, after(Clock::now(), remaining(deadline) / 2), cancel);
  }
  auto subscription = Subscription::open(address, channel, deadline, cancel);
  const std::lock_guard lock(mutex_);
  OfOne& its = of_each_[server];
  its.tried_at = Clock::now();
  if (!subscription) {
    its.trouble = subscription.error();
    return subscription.error();
  }
  its.trouble = (*subscription)->nobody_calls();
  watch_for_input(events_.get(), (*subscription)->fd());
  its.subscription = std::move(*subscription);
  return {};
}

// Before the server, or a failover between the two would not be heard of.  A convenience: who is
// not told asks before the next renewal or question.
void Subscriptions::listen_to(const std::shared_ptr<Sentinels>& sentinels, Deadline deadline,
                              Cancel cancel) {
  {
    const std::lock_guard lock(mutex_);
    sentinels_ = sentinels;
    if (!to_sentinels_.empty()) return;
  }
  for (const Address* sentinel : sentinels->in_order()) {
    const Deadline soon = std::min(deadline, after(Clock::now(), kSentinelAnswers));
    auto subscription = Subscription::to_sentinel(*sentinel, soon, cancel);
    if (!subscription) {
      util::log(util::Level::detail,
                "it will not tell of a failover: " + subscription.error().message);
      continue;
    }
    const std::lock_guard lock(mutex_);
    watch_for_input(events_.get(), (*subscription)->fd());
    to_sentinels_.push_back(std::move(*subscription));
  }
}

// Another server may be the master.
bool Subscriptions::is_switched() {
  bool out = false;
  std::erase_if(to_sentinels_, [&](const auto& its) {
    const auto messages = its->read();
    if (!messages) return true;
    out = out || std::ranges::any_of(messages.value(), [&](const std::string& message) {
            return tells_of_switch(*sentinels_, message);
          });
    return false;
  });
  if (out) ++sentinels_->switches;
  return out;
}

void Subscriptions::drop_unless_at(unsigned server, const HostPort& host) {
  const std::lock_guard lock(mutex_);
  auto& subscription = of_each_[server].subscription;
  if (subscription && subscription->host() != host) subscription.reset();
}

void Subscriptions::drop(unsigned server) {
  const std::lock_guard lock(mutex_);
  of_each_[server].subscription.reset();
}

// What is lost is closed, and so out of the epoll set.
std::vector<std::pair<unsigned, std::string>> Subscriptions::read() {
  std::vector<std::pair<unsigned, std::string>> out;
  const std::lock_guard lock(mutex_);
  if (is_switched()) {
    of_each_.front().subscription.reset();
    out.emplace_back(0, "");
  }
  for (unsigned server = 0; server < of_each_.size(); ++server) {
    OfOne& its = of_each_[server];
    if (!its.subscription) continue;
    auto texts = its.subscription->read();
    if (!texts) {
      its.subscription.reset();
      its.closed_at_once = since(its.tried_at) < kLastsAtLeast ? its.closed_at_once + 1 : 0;
      if (its.closed_at_once > kMostClosed) its.trouble = texts.error();
      out.emplace_back(server, "");
      continue;
    }
    for (std::string& text : *texts) out.emplace_back(server, std::move(text));
  }
  return out;
}

std::int64_t Subscriptions::tracking_redirect(unsigned server, unsigned connection) {
  const std::lock_guard lock(mutex_);
  OfOne& its = of_each_[server];
  if (!its.subscription || connection == 0) return 0;
  const std::pair tracks(connection, its.subscription->redirect_id());
  if (its.tracks == tracks) return 0;
  its.tracks = tracks;
  return tracks.second;
}

}  // namespace dlock::redis
