// What a server keeps of a holder or a waiter, where it is no more than that: one JSON object.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/backend.hpp"

namespace dlock {

std::string format_lock_record(const Request& request);

/// None for anything that format_lock_record() did not write.
std::optional<Owner> parse_lock_record(std::string_view text);

}  // namespace dlock
