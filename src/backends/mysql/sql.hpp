// How text gets into a statement: as a hexadecimal literal, which is the same in every sql_mode and
// character set and cannot be closed by anything in it.
#pragma once

#include <string>
#include <string_view>

namespace dlock::mysql {

/// X'6a6f62': a binary string.  There is no other way in for text that is not ours.
std::string literal(std::string_view bytes);

/// One line for -vv: how each of the statements begins.
std::string outline(std::string_view statements);

}  // namespace dlock::mysql
