// A lock that is held on one Redis server.
#pragma once

#include <memory>

#include "backends/redis/node.hpp"
#include "backends/redis/subscription.hpp"

namespace dlock::redis {

struct Grant {
  Request request;
  std::string acquired_at;
  std::uint64_t fence = 0;                     // 0: there is none
  Deadline asked;                              // when the attempt was sent that was granted
  std::unique_ptr<Subscription> subscription;  // of the waiter, if it had to wait
};

std::unique_ptr<Lease> make_lease(std::shared_ptr<Node> node, Grant grant);

}  // namespace dlock::redis
