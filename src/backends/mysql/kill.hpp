// What one session does to another: a user may do it to sessions of his own without any right.
#pragma once

#include <cstdint>

#include "backends/mysql/connection.hpp"

namespace dlock::mysql {

/// Ends a session.  False if it may not be done; true also if there is no such session.
Result<bool> end_session(Connection& connection, std::uint64_t other, Deadline deadline);

}  // namespace dlock::mysql
