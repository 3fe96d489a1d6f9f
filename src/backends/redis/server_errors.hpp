// What is wrong with several servers at once, in words.
#pragma once

#include <optional>
#include <vector>

#include "backends/redis/cluster.hpp"

namespace dlock::redis {

/// Of a server that answers as the one of rank `other`, too.
Error duplicate_server(const Cluster& cluster, unsigned server, unsigned other);

/// Of a server that has not answered in the time that it had.
Error no_answer(const Cluster& cluster, unsigned server);

/// "2 of 5 servers answered, 3 are needed: ...", with the errors of those that did not.  Of a
/// single server its error as it is.  Errc::unreachable while a majority may come back, even if the
/// others refuse for good (denied, invalid, conflict).
Error too_few(unsigned needed, const std::vector<std::optional<Error>>& errors);

}  // namespace dlock::redis
