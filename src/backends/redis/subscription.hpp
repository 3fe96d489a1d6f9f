// The connection on which a waiter is called and a holder hears that it has lost its lock.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/redis/connection.hpp"

namespace dlock::redis {

class Subscription {
 public:
  /// Subscribed when this returns.  Errc::unreachable, also if the server does not answer within a
  /// second, unsupported if it takes no subscription, denied, cancelled.
  static Result<std::unique_ptr<Subscription>> open(const Address& address,
                                                    const std::string& channel, Deadline deadline,
                                                    Cancel cancel);

  /// The same to what a sentinel tells of failovers.
  static Result<std::unique_ptr<Subscription>> to_sentinel(const Address& address,
                                                           Deadline deadline, Cancel cancel);

  /// The argument of CLIENT TRACKING ... REDIRECT that makes this one hear when a key changes that
  /// another connection has read (Redis 6: client-side caching); 0 where it cannot.
  std::int64_t redirect_id() const { return redirect_id_; }

  /// Why those who free the lock cannot call this one, if they are as we are: we may not PUBLISH.
  const std::optional<Error>& nobody_calls() const { return nobody_calls_; }

  const HostPort& host() const { return connection_.address().host; }

  /// Readable when there is something to read(), also at the end of the connection.
  int fd() const { return connection_.fd(); }

  /// The messages that have come, without waiting, and the names of the keys that have changed; ""
  /// if it may be any key.  If much has come, only a part of it: fd() stays readable.  An error:
  /// the connection is lost, and nothing will come any more.
  Result<std::vector<std::string>> read();

 private:
  explicit Subscription(const Address& address) : connection_(address) {}
  Result<void> began(const Reply& reply);

  Connection connection_;
  std::int64_t redirect_id_ = 0;
  std::optional<Error> nobody_calls_;
};

}  // namespace dlock::redis
