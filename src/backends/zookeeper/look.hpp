// What can be seen of a lock.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/zookeeper/queue.hpp"
#include "backends/zookeeper/session.hpp"
#include "core/backend.hpp"

namespace dlock::zookeeper {

/// The holder at `node`, of which `data` is the answer to a get().
LockInfo::Holder holder_of(const NodeName& node, const Reply& data);

/// Of a lock that has these children.  Asks for the holders, and if `waiters_too` for those that
/// wait as well; else these are counted only.  Who has gone by then is left out.
Result<LockInfo> look_at(Session& session, const std::string& path, std::string_view key,
                         const std::vector<std::string>& children, bool waiters_too,
                         Deadline deadline, Cancel cancel);

}  // namespace dlock::zookeeper
