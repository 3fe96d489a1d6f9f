// Requests and replies as -vv shows them: on one line, cut, without what is secret.
#pragma once

#include <span>
#include <string>

#include "backends/redis/connection.hpp"
#include "backends/redis/reply.hpp"

namespace dlock::redis {

/// "EVALSHA ask dlock:job"; of other commands the first two words.  Not for AUTH.
std::string describe(std::span<const Command> commands);

std::string describe(std::span<const Reply> replies);

}  // namespace dlock::redis
