// What several texts for the server have in common.  Text of others gets into a statement as a
// hexadecimal literal, which is the same in every sql_mode and character set and cannot be closed
// by anything in it.
#pragma once

#include <string>
#include <string_view>

namespace dlock::mysql {

/// True of a primary.  Since MariaDB 11.8 the variable is a word, before and elsewhere a number.
inline constexpr const char* kWritable = "CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF')";

/// The time of the server, in milliseconds since 1970.
inline constexpr const char* kNowMs =
    "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)";

/// X'6a6f62': a binary string.  There is no other way in for text that is not ours.
std::string literal(std::string_view bytes);

/// One line for -vv: how each of the statements begins.
std::string outline(std::string_view statements);

}  // namespace dlock::mysql
