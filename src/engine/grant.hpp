// What the holder of a lock gets with it, and the variables that pass it to a command.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "util/clock.hpp"

namespace dlock {

struct Grant {
  std::string key;
  std::string token;  // the owner id
  std::optional<std::uint64_t> fence;
  std::optional<unsigned> slot;
  Deadline valid_until = kNever;  // of a lease that is not renewed; else kNever
};

/// The variables DLOCK_KEY to DLOCK_SLOT for one or more grants.  An empty value: not to be set.
std::vector<std::pair<std::string, std::string>> grant_variables(std::span<const Grant> grants);

}  // namespace dlock
