// What the server answers to one statement, and the numbers in it: they come as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dlock::mysql {

using Row = std::vector<std::optional<std::string>>;  // none: NULL

struct Answer {
  std::vector<Row> rows;
  std::uint64_t affected = 0;  // rows that are other than before: an UPDATE to the same counts none
  std::uint64_t insert_id = 0;
};

/// What stands in a column, up to 10^18; 0 if it is no such number, is NULL or is not there.
std::uint64_t number(const Row& row, std::size_t column);

/// The same where it may be negative, down to -10^18.
long long signed_number(const Row& row, std::size_t column);

/// The number in an answer of one column and one row; 0: none.
std::uint64_t number_in(const Answer& answer);

}  // namespace dlock::mysql
