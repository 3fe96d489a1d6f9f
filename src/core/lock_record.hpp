// What a server keeps of a holder or a waiter, where it is no more than that: one JSON object.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/backend.hpp"

namespace dlock {

struct LockRecord {
  Owner owner;
  std::optional<Millis> ttl;  // that the holder asked for
};

std::string format_lock_record(const Request& request);

/// None for anything that format_lock_record() did not write.
std::optional<LockRecord> parse_lock_record(std::string_view text);

}  // namespace dlock
