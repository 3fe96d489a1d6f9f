// A lock that is held: its renewal and its release.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "backends/sql/database.hpp"
#include "core/backend.hpp"

namespace dlock::sql {

struct Grant {
  Request request;  // as the row has it
  std::uint64_t fence = 0;
  unsigned slot = 0;
  Deadline asked{};                        // before the server began to count the ttl
  bool has_name = true;                    // the session is the holder's since the grant
  std::optional<Millis> resumed_for = {};  // by a process that did not acquire the lock
};

std::unique_ptr<Lease> make_lease(std::shared_ptr<const Database> database,
                                  std::unique_ptr<Session> session, Grant grant);

}  // namespace dlock::sql
