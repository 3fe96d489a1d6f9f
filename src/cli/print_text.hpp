// For people: aligned tables, wrapped paragraphs, and a stdout that is not taken for granted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/columns.hpp"

namespace dlock::cli {

/// How wide help may be.
inline constexpr std::size_t kWidth = 80;

inline constexpr std::size_t kAnyWidth = SIZE_MAX;

/// A cell as text that a terminal may be given.
std::string cell_text(const Cell& cell);

/// Headings and rows, two spaces between the columns, none at the ends of lines.  Columns that give
/// are cut, so that lines are no wider than `width` if that can be had.
std::string print_text(const Table& table, std::size_t width = kAnyWidth);

/// Of its lines, if nothing is cut.
std::size_t width_of(const Table& table);

/// Of the terminal that `fd` is; kAnyWidth if it is none.
std::size_t terminal_width(int fd);

/// A phrase that begins with a lower-case letter as a sentence: capital and full stop.
std::string sentence(std::string_view phrase);

/// `text` in lines of at most `width` columns, each behind `indent` spaces; a blank line of the
/// text stays one.
std::string wrap(std::string_view text, std::size_t indent, std::size_t width = kWidth);

/// `term` at `indent`, and `text` wrapped beside it from column `column` on; behind a longer term,
/// its first line begins further to the right.
std::string hanging(std::string_view term, std::string_view text, std::size_t indent,
                    std::size_t column, std::size_t width = kWidth);

/// Writes all of `text` to stdout; returns the exit status.  What cannot be written (a full disk)
/// is an error with a message, status 1.
int write_stdout(std::string_view text);

}  // namespace dlock::cli
