// A Redis client for oracles: shares no code with the one under test.
#pragma once

#include <string>
#include <vector>

#include "util/clock.hpp"

namespace dlock::test {

/// Sends one command over a connection of its own to the unix socket `path`, after AUTH if there
/// is a password, and returns the reply as `redis-cli` prints it raw: elements of arrays one per
/// line, errors as their text, but nil as "(nil)".  Throws if there is no reply until `deadline`.
std::string redis_command(const std::string& path, const std::string& password,
                          const std::vector<std::string>& words, Deadline deadline);

}  // namespace dlock::test
