// What a lock's node stands below.
#pragma once

#include <string>

#include "backends/zookeeper/session.hpp"
#include "core/result.hpp"

namespace dlock::zookeeper {

/// Makes the node of the lock, `lock`, and those above it where they are missing, but not the
/// chroot.
Result<void> make_parents(Session& session, const Place& place, const std::string& lock,
                          Deadline deadline, Cancel cancel);

/// The same for any node, which stays there when it is empty, as do those that are made above it.
Result<void> make_persistent(Session& session, const Place& place, const std::string& path,
                             Deadline deadline, Cancel cancel);

}  // namespace dlock::zookeeper
