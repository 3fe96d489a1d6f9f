// What `dlock once` remembers, on one Redis server or on a majority of several.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "backends/redis/cluster.hpp"
#include "core/backend.hpp"

namespace dlock::redis {

// See Backend.  Completing is in redis_lease.cpp.

Result<std::optional<Mark>> find_mark(Cluster& cluster, const MarkName& name, Deadline deadline);
Result<void> prepare_marks(Cluster& cluster, std::string_view key, Deadline deadline);
Result<std::vector<Mark>> list_marks(Cluster& cluster, std::string_view prefix, Deadline deadline);
Result<bool> forget_mark(Cluster& cluster, const MarkName& name, Deadline deadline);

}  // namespace dlock::redis
