// What look.lua answers, in the words of the contract.
#pragma once

#include <string_view>

#include "backends/redis/reply.hpp"
#include "core/backend.hpp"

namespace dlock::redis {

LockInfo lock_info(std::string_view key, const Reply& answer);

}  // namespace dlock::redis
