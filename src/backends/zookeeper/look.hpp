// What can be seen of a lock.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/zookeeper/queue.hpp"
#include "backends/zookeeper/session.hpp"
#include "core/backend.hpp"

namespace dlock::zookeeper {

/// The holder at `node`, of which `data` is the answer to a get().
LockInfo::Holder holder_of(const NodeName& node, const Reply& data);

/// Hands over what each of these children of `path` says, in their order; of one that is gone or
/// that we may not read, that code.
Result<void> read_each(Session& session, const std::string& path,
                       const std::vector<std::string>& children, Deadline deadline, Cancel cancel,
                       const std::function<void(std::size_t index, const Reply&)>& take);

/// Of a lock that has these children.  Asks for the holders, and if `waiters_too` for those that
/// wait as well; else these are counted only.  Who has gone by then is left out.
Result<LockInfo> look_at(Session& session, const std::string& path, std::string_view key,
                         const std::vector<std::string>& children, bool waiters_too,
                         Deadline deadline, Cancel cancel);

}  // namespace dlock::zookeeper
