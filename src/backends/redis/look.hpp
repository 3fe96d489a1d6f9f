// What look.lua answers, in the words of the contract.
#pragma once

#include <optional>
#include <string_view>

#include "backends/redis/calls.hpp"
#include "backends/redis/reply.hpp"
#include "core/backend.hpp"

namespace dlock::redis {

LockInfo lock_info(std::string_view key, const Reply& answer);

/// The holder that `record` is about.  If it is not that of the grant or offer `id`, another
/// program has acquired the lock: told by what it left there, foreign_holder(type, id).  `left`:
/// until the lock ends; none: it never does.
LockInfo::Holder holder_of(std::string_view type, const std::string& id, const std::string& record,
                           std::optional<Millis> left);

}  // namespace dlock::redis
