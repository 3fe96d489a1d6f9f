// A lock that is held: its renewal and its release.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backends/mysql/connection.hpp"
#include "backends/mysql/schema.hpp"
#include "core/backend.hpp"

namespace dlock::mysql {

struct Grant {
  Request request;  // with the id that the lock was granted to
  std::uint64_t row = 0;
  std::uint64_t fence = 0;
  unsigned slot = 0;     // in the row
  Deadline asked{};      // before the server began to count the ttl
  bool resumed = false;  // by a process that did not acquire the lock
};

/// `connection` is the one that has the holder's mark; that of a lease that is resumed has not.
/// With Method::row a renewal is also Errc::lost if the server that renews has no session with
/// row_mark() (see row_lease.hpp); release() is still to be called then.
std::unique_ptr<Lease> make_lease(std::shared_ptr<const Place> place, Method method,
                                  std::unique_ptr<Connection> connection, Grant grant);

}  // namespace dlock::mysql
