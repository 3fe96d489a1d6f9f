// The subscriptions of a waiter, and of the holder that it becomes, at all servers, behind one
// descriptor.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/redis/subscription.hpp"
#include "util/fd.hpp"

namespace dlock::redis {

/// The threads of the servers add to it, and the waiter or holder reads.
class Subscriptions {
 public:
  explicit Subscriptions(unsigned servers) : of_each_(servers) {}

  /// Creates fd(), if there is none yet.
  void open();
  /// Readable when there is something to read(); -1 before open(), or if the system refuses.
  int fd() const { return events_.get(); }

  enum class State {
    missing,  // it was not tried, or not answered
    subscribed,
    refused,
  };
  State at(unsigned server) const;
  /// Why no message comes from there: the last subscribe() has failed, or its connection is always
  /// closed at once, or nobody can publish.
  std::optional<Error> trouble(unsigned server) const;
  /// From none of the servers.
  bool all_have_trouble() const;
  /// It would cost the caller time again, and probably in vain.
  bool has_failed_lately(unsigned server) const;

  /// Fails as Subscription::open().  With sentinels it listens to all of them that answer, too.
  Result<void> subscribe(unsigned server, const Address& address, const std::string& channel,
                         Deadline deadline, Cancel cancel);
  /// It may be dead although nobody has told.
  void drop(unsigned server);
  /// Drops it if it leads to another host: to an earlier master.
  void drop_unless_at(unsigned server, const HostPort& host);

  /// What has come, and from which server.  One whose connection is lost, or leads to an earlier
  /// master, is dropped, and comes as an empty text.
  std::vector<std::pair<unsigned, std::string>> read();

  /// What CLIENT TRACKING ... REDIRECT needs, so that the subscription at this server hears when a
  /// key changes that the server's connection of this number has read; 0: it cannot, or was told
  /// so.
  std::int64_t tracking_redirect(unsigned server, unsigned connection);

 private:
  struct OfOne {
    std::unique_ptr<Subscription> subscription;
    std::optional<Error> trouble;
    Deadline tried_at{};
    unsigned closed_at_once = 0;  // times in a row
    // What it was told last: of which connection's keys, and to which subscription.
    std::pair<unsigned, std::int64_t> tracks;
  };

  void listen_to(const std::shared_ptr<Sentinels>& sentinels, Deadline deadline, Cancel cancel);
  bool is_switched();

  mutable std::mutex mutex_;
  Fd events_;  // an epoll instance: stays the same when a subscription's socket is another
  std::vector<OfOne> of_each_;
  // Who watch over the only server.
  std::shared_ptr<Sentinels> sentinels_;
  std::vector<std::unique_ptr<Subscription>> to_sentinels_;
};

}  // namespace dlock::redis
