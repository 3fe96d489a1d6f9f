// A lock that is held on one Redis server, or on a majority of several.
#pragma once

#include <memory>
#include <string>

#include "backends/redis/leaving.hpp"
#include "backends/redis/subscriptions.hpp"

namespace dlock::redis {

struct Grant {
  Leaver holder;
  std::string acquired_at;
  std::uint64_t token = 0;  // 0: there is none, or it is not known
  unsigned number = 0;      // of slots; 0: none
  Deadline asked_at;        // when the request was sent that was granted
  Deadline valid_until;     // in the past: not known before a renewal
  std::shared_ptr<Subscriptions> subscriptions;
};

std::unique_ptr<Lease> make_lease(std::shared_ptr<Cluster> cluster, Grant grant);

}  // namespace dlock::redis
