// What the numbers of errors mean to us and to the person at the terminal.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "backends/mysql/place.hpp"
#include "backends/sql/session.hpp"

namespace dlock::mysql {

/// `code` and `text` of the server or of the client library, as they come; `server` is what
/// Place::shown_host() says.  The message is one line, and names the server.
Error error_of(unsigned code, std::string_view text, const std::string& server, const Place& place);

/// The errno, or where it is negative the outcome of getaddrinfo(3), that the client library's text
/// about an attempt to connect ends with; none if it does not.
std::optional<int> system_error(unsigned code, std::string_view text);

/// What a server said that did not come to TLS: MariaDB's library packs it into a text of its own.
struct Refusal {
  unsigned code = 0;
  std::string text;
};
std::optional<Refusal> refusal_before_tls(std::string_view text);

/// The same as error_of() for an attempt to connect; `error` is what came of it, as above.
Error connect_error_of(unsigned code, std::string_view text, std::optional<int> error,
                       const std::string& server, const Place& place);

/// Whether this number means that the connection is of no use any more.
bool ends_connection(unsigned code);

/// What a client does about it.
sql::Trouble trouble_of(unsigned code, const Place& place);

}  // namespace dlock::mysql
