// The subscriptions of a holder at all servers, behind one descriptor.
#pragma once

#include <sys/epoll.h>

#include <memory>
#include <mutex>
#include <vector>

#include "backends/redis/subscription.hpp"
#include "util/fd.hpp"

namespace dlock::redis {

/// The threads of the servers add to it, and the holder listens.
class Ears {
 public:
  explicit Ears(unsigned nodes) : subscriptions_(nodes) {}

  int fd() const { return events_.get(); }
  bool open() {
    events_.reset(epoll_create1(EPOLL_CLOEXEC));
    return static_cast<bool>(events_);
  }
  bool hears(unsigned node) {
    const std::lock_guard lock(mutex_);
    return subscriptions_[node] != nullptr;
  }
  void add(unsigned node, std::unique_ptr<Subscription> subscription) {
    const std::lock_guard lock(mutex_);
    epoll_event event{.events = EPOLLIN, .data = {}};
    if (events_) epoll_ctl(events_.get(), EPOLL_CTL_ADD, subscription->fd(), &event);
    subscriptions_[node] = std::move(subscription);
  }
  // What is lost is closed, and so out of the epoll set.
  void drain() {
    const std::lock_guard lock(mutex_);
    for (auto& subscription : subscriptions_) {
      if (subscription && !subscription->read({})) subscription.reset();
    }
  }

 private:
  std::mutex mutex_;
  Fd events_;  // an epoll instance: stays the same when a subscription's socket is another
  std::vector<std::unique_ptr<Subscription>> subscriptions_;
};

}  // namespace dlock::redis
