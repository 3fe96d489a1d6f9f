// The subscriptions of a holder at all servers, behind one descriptor.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/redis/subscription.hpp"
#include "util/fd.hpp"

namespace dlock::redis {

/// The threads of the servers add to it, and the holder listens.
class Ears {
 public:
  explicit Ears(unsigned nodes) : subscriptions_(nodes), refused_(nodes), watches_(nodes) {}

  int fd() const { return events_.get(); }
  bool open() {
    events_.reset(epoll_create1(EPOLL_CLOEXEC));
    return static_cast<bool>(events_);
  }
  bool hears(unsigned node) {
    const std::lock_guard lock(mutex_);
    return subscriptions_[node] != nullptr;
  }
  /// Whether this node is to be asked for a subscription.
  bool is_missing(unsigned node) {
    const std::lock_guard lock(mutex_);
    return subscriptions_[node] == nullptr && !refused_[node];
  }
  /// It does not take any.
  void refused(unsigned node) {
    const std::lock_guard lock(mutex_);
    refused_[node] = true;
  }
  /// What CLIENT TRACKING ... REDIRECT needs, so that this node's subscription hears when a key
  /// changes that the node's connection of this number has read; 0: it cannot, or was told so.
  std::int64_t to_be_told(unsigned node, unsigned connection) {
    const std::lock_guard lock(mutex_);
    const auto& subscription = subscriptions_[node];
    if (!subscription || connection == 0) return 0;
    const Watch watch{connection, subscription->redirect_id()};
    if (watches_[node] == watch) return 0;
    watches_[node] = watch;
    return watch.redirect_id;
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
  struct Watch {
    unsigned connection = 0;
    std::int64_t redirect_id = 0;
    bool operator==(const Watch&) const = default;
  };

  std::mutex mutex_;
  Fd events_;  // an epoll instance: stays the same when a subscription's socket is another
  std::vector<std::unique_ptr<Subscription>> subscriptions_;
  std::vector<bool> refused_;
  std::vector<Watch> watches_;
};

}  // namespace dlock::redis
