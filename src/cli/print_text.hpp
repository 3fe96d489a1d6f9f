// For people: aligned tables, wrapped paragraphs, and a stdout that is not taken for granted.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cli/columns.hpp"

namespace dlock::cli {

/// How wide help may be.
inline constexpr std::size_t kWidth = 80;

/// A cell as text: yes and no for a bool.
std::string cell_text(const Cell& cell);

/// Headings and rows, two spaces between the columns, none at the ends of lines.
std::string print_text(const Table& table);

/// `text` in lines of at most kWidth columns, each behind `indent` spaces; a blank line of the text
/// stays one.
std::string wrap(std::string_view text, std::size_t indent);

/// `term` at `indent`, and `text` wrapped beside it from column `column` on.
std::string hanging(std::string_view term, std::string_view text, std::size_t indent,
                    std::size_t column);

/// Writes all of `text` to stdout; returns the exit status.  What cannot be written (a full disk)
/// is an error with a message, status 1.
int write_stdout(std::string_view text);

}  // namespace dlock::cli
