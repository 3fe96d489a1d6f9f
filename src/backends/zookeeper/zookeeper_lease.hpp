// A lock that is held: a node, and the session that it lives with.
#pragma once

#include <memory>
#include <string>

#include "backends/zookeeper/session.hpp"
#include "core/backend.hpp"

namespace dlock::zookeeper {

struct Grant {
  Request request;
  std::string path;       // of our node
  unsigned slot = 0;      // of a slots lock
  std::string slot_path;  // of its node
  std::uint64_t fence = 0;
  Call announced;  // the new record on its way, for the client behind us; null if none needs it
};

std::unique_ptr<Lease> make_lease(std::shared_ptr<const Place> place,
                                  std::unique_ptr<Session> session, Grant grant);

}  // namespace dlock::zookeeper
