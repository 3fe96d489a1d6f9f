// What a lock that was acquired is to whoever holds it, and the variables that tell a command.
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
  Deadline valid_until = kNever;  // of a lease that nobody renews; else kNever
};

/// The variables DLOCK_KEY to DLOCK_SLOT for these grants, at least one.  An empty value means that
/// there is to be no such variable.
std::vector<std::pair<std::string, std::string>> grant_variables(std::span<const Grant> grants);

}  // namespace dlock
