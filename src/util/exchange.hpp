// What -vv says of each exchange with a lock service.
#pragma once

#include <optional>
#include <string_view>

#include "util/clock.hpp"

namespace dlock::util {

/// False unless -vv is given: then there is no need to describe an exchange.
bool exchanges_shown();

/// Logs "redis h:6379: EVALSHA renew dlock:job -> 1, 0.3 ms", without the time if `sent` is none.
/// `server` may also stand in `outcome`, as it does in messages of errors; it is printed once.  Ids
/// are cut to the 12 digits that others may see.  No text may hold a password.
void log_exchange(std::string_view server, std::string_view request, std::string_view outcome,
                  std::optional<Clock::time_point> sent);

}  // namespace dlock::util
