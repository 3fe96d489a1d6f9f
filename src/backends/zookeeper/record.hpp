// The record of a holder or a waiter: the data of its node.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/backend.hpp"

namespace dlock::zookeeper {

std::string format_record(const Request& request);

/// None for anything that format_record() did not write.
std::optional<Owner> parse_record(std::string_view text);

}  // namespace dlock::zookeeper
