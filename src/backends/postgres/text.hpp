// What several texts for the server have in common.  Text of others gets into a statement as an
// escape string, in which everything but letters and digits is a number: it is the same with every
// setting, and cannot be closed by anything in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dlock::postgres {

/// True of a primary.
inline constexpr const char* kWritable = "(NOT pg_is_in_recovery())::int";

/// The time of the server, in milliseconds since 1970.
inline constexpr const char* kNowMs =
    "floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint";

/// E'job\x2d1'.  There is no other way in for text that is not ours.
std::string literal(std::string_view bytes);

/// The statements of a text, which are separated by semicolons, but not between $$ and $$.
std::vector<std::string> statements_of(std::string_view text);

/// One line for -vv: how each of the statements begins.
std::string outline(std::string_view text);

}  // namespace dlock::postgres
