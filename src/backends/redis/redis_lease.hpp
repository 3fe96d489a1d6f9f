// A lock that is held on one Redis server, or on a majority of several.
#pragma once

#include <memory>

#include "backends/redis/cluster.hpp"
#include "backends/redis/leftovers.hpp"
#include "backends/redis/round.hpp"
#include "backends/redis/subscription.hpp"

namespace dlock::redis {

struct Grant {
  Request request;
  std::string acquired_at;
  Agreed agreed;           // of a single server what it has said; token 0: there is none
  Deadline asked;          // when the attempt was sent that was granted
  Deadline valid_until;    // in the past: not known before a renewal
  unsigned head = 0;       // where the waiter was subscribed
  bool is_queued = false;  // there still
  std::shared_ptr<Outstanding> outstanding;
  Leftovers leftovers;                         // to be taken back
  std::unique_ptr<Subscription> subscription;  // if it had to wait
};

std::unique_ptr<Lease> make_lease(std::shared_ptr<Cluster> cluster, Grant grant);

}  // namespace dlock::redis
