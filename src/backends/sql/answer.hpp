// What a database answers to one statement, and the numbers in it: they come as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dlock::sql {

using Row = std::vector<std::optional<std::string>>;  // none: NULL

struct Answer {
  std::vector<Row> rows;
};

/// The text of a column; "" if it is NULL or is not there.
std::string text(const Row& row, std::size_t column);

/// The number in a column, up to 10^18; 0 if it is no such number, is NULL or is not there.
std::uint64_t number(const Row& row, std::size_t column);

/// The same where it may be negative, down to -10^18.
long long signed_number(const Row& row, std::size_t column);

/// True if the column is a number other than 0.
inline bool is_true(const Row& row, std::size_t column) { return number(row, column) != 0; }

/// The first row of an answer; an empty row if there is none.
const Row& first_row(const Answer& answer);

/// The number in an answer of one column and one row; 0: none.
std::uint64_t number_in(const Answer& answer);

}  // namespace dlock::sql
