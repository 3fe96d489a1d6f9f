// What the numbers of errors mean to us and to the person at the terminal.
#pragma once

#include <string>
#include <string_view>

#include "backends/mysql/place.hpp"

namespace dlock::mysql {

/// `code` and `text` of the server or of the client library, as they come; `server` is what
/// Place::shown_host() says.  The message is one line, and names the server.
Error error_of(unsigned code, std::string_view text, const std::string& server, const Place& place);

/// The same for an attempt to connect, of which the library tells with the number of an errno.
Error connect_error_of(unsigned code, std::string_view text, const std::string& server,
                       const Place& place);

/// Whether this number means that the connection is of no use any more.
bool ends_connection(unsigned code);

}  // namespace dlock::mysql
