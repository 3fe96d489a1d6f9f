// What look.lua answers, in the words of the contract.
#pragma once

#include <optional>
#include <string_view>

#include "backends/redis/calls.hpp"
#include "backends/redis/reply.hpp"
#include "core/backend.hpp"

namespace dlock::redis {

LockInfo lock_info(std::string_view key, const Reply& answer);

/// The holder that `record` is about.  None if it is not that of the grant or offer `id`: another
/// program has acquired the lock.
std::optional<LockInfo::Holder> holder_in(const std::string& record, const std::string& id,
                                          std::optional<Millis> left);

}  // namespace dlock::redis
