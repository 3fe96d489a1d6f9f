// Output for people: aligned tables, wrapped paragraphs, and writes to stdout that are checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/columns.hpp"

namespace dlock::cli {

/// The width of help.
inline constexpr std::size_t kWidth = 80;

inline constexpr std::size_t kAnyWidth = SIZE_MAX;

/// A cell as text that is safe for a terminal.
std::string cell_text(const Cell& cell);

/// Headings and rows, with two spaces between columns and none at the ends of lines.  Columns with
/// `gives` are cut so that lines fit into `width`, if possible.
std::string print_text(const Table& table, std::size_t width = kAnyWidth);

/// The width of its lines if nothing is cut.
std::size_t width_of(const Table& table);

/// The width of the terminal `fd`; kAnyWidth if `fd` is not a terminal.
std::size_t terminal_width(int fd);

/// `text` in lines of at most `width` columns, each behind `indent` spaces; a blank line of the
/// text stays one.
std::string wrap(std::string_view text, std::size_t indent, std::size_t width = kWidth);

/// `term` at `indent`, and `text` wrapped from column `column` on.  After a longer term, the first
/// line of the text begins further right.
std::string hanging(std::string_view term, std::string_view text, std::size_t indent,
                    std::size_t column, std::size_t width = kWidth);

/// Writes `text` to stdout and returns the exit status.  If that fails (a full disk), prints an
/// error and returns 1.
int write_stdout(std::string_view text);

}  // namespace dlock::cli
