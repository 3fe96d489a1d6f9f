// The numbers of `dlock id`: persistent nodes beside those of the locks.
#pragma once

#include <cstdint>
#include <string_view>

#include "backends/zookeeper/session.hpp"
#include "core/backend.hpp"

namespace dlock::zookeeper {

/// See Backend.  The session is open.
Result<std::uint64_t> take_numbers(Session& session, const Place& place, std::string_view name,
                                   std::uint64_t count, Deadline deadline);
Result<IdWindow> lease_window(Session& session, const Place& place, Millis length,
                              Deadline deadline);

}  // namespace dlock::zookeeper
