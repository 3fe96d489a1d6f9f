// How much room a text takes on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dlock::util {

/// The columns that `text`, which is printable(), takes: two for a wide character, none for a
/// combining one.
std::size_t display_width(std::string_view text);

/// `text` if it fits into `columns`; else as much of its beginning as does, with a `…`.
std::string cut_to_width(std::string_view text, std::size_t columns);

}  // namespace dlock::util
