// What one session does to another: a user may do it to sessions of his own without any right.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "backends/mysql/connection.hpp"

namespace dlock::mysql {

/// Ends a session.  False if it may not be done; true also if there is no such session.
Result<bool> end_session(Connection& connection, std::uint64_t other, Deadline deadline,
                         Cancel cancel = {});

/// Ends the session that has this mark, unless it is `connection`, as far as it may be done: the
/// number of a connection may be another program's after a restart of the server.  Says what its
/// statement was waiting for, in words for people, or "".
Result<std::string> end_session_of(Connection& connection, const std::string& mark,
                                   Deadline deadline, Cancel cancel);

}  // namespace dlock::mysql
