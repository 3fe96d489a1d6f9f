// The numbers of `dlock id`, in a table of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "backends/mysql/connection.hpp"
#include "backends/mysql/place.hpp"
#include "core/backend.hpp"

namespace dlock::mysql {

/// Says one text to the server.  A Reply that is not ok() means that a table is missing; all other
/// errors are those of the Result.  What is in doubt, or failed in a way that passes, may be said
/// twice.
using Say = std::function<Result<Reply>(const std::string& text)>;

/// See Backend.
Result<std::uint64_t> take_numbers(const Say& say, const Place& place, std::string_view name,
                                   std::uint64_t count);
Result<IdWindow> lease_window(const Say& say, const Place& place, Millis length, Deadline deadline);

}  // namespace dlock::mysql
