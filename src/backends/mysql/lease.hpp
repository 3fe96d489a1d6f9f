// A lock that is held: its renewal and its release.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backends/mysql/connection.hpp"
#include "backends/mysql/schema.hpp"
#include "core/backend.hpp"
#include "util/life.hpp"

namespace dlock::mysql {

struct Grant {
  Request request;  // with the id that the lock was granted to
  std::uint64_t row = 0;
  std::uint64_t fence = 0;
  unsigned slot = 0;          // in the row
  Deadline asked{};           // before the server began to count the ttl
  util::LifeToken life = {};  // with mysql-row; its mark is in the record
  bool resumed = false;       // by a process that did not acquire the lock
};

/// `connection` is the one that has the holder's mark; with mysql-row, the row lock.  That of a
/// lease that is resumed has neither.
std::unique_ptr<Lease> make_lease(std::shared_ptr<const Place> place, Method method,
                                  std::unique_ptr<Connection> connection, Grant grant);

}  // namespace dlock::mysql
