// What the SQLSTATEs of errors mean to us and to the person at the terminal.
#pragma once

#include <string>
#include <string_view>

#include "backends/postgres/place.hpp"
#include "backends/sql/session.hpp"

namespace dlock::postgres {

/// `state` and `text` as the server has sent them; `server` is what Place::shown_host() says.  The
/// message is one line, and names the server.
Error error_of(std::string_view state, std::string_view text, const std::string& server,
               const Place& place);

/// Of an attempt to connect: `text` is all that libpq says, with its verbosity set to VERBOSE.
Error connect_error_of(std::string_view text, const std::string& server, const Place& place);

/// Whether a connection on which this error came is of no use any more.
bool ends_connection(std::string_view state);

/// What a client does about it.
sql::Trouble trouble_of(std::string_view state);

}  // namespace dlock::postgres
