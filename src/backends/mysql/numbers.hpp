// The numbers of `dlock id`, in a table of their own.
#pragma once

#include <cstdint>
#include <string_view>

#include "backends/mysql/extra_table.hpp"
#include "backends/mysql/place.hpp"
#include "core/backend.hpp"

namespace dlock::mysql {

/// See Backend.
Result<std::uint64_t> take_numbers(const Say& say, const Place& place, std::string_view name,
                                   std::uint64_t count);
Result<IdWindow> lease_window(const Say& say, const Place& place, Millis length, Deadline deadline);

}  // namespace dlock::mysql
