#include "backends/sql/answer.hpp"

#include "util/text.hpp"

namespace dlock::sql {
namespace {

constexpr long long kMost = 1'000'000'000'000'000'000;

long long parse(const Row& row, std::size_t column, long long least) {
  if (column >= row.size() || !row[column]) return 0;
  return util::parse_int(*row[column], least, kMost).value_or(0);
}

}  // namespace

std::string text(const Row& row, std::size_t column) {
  return column < row.size() ? row[column].value_or("") : "";
}

std::uint64_t number(const Row& row, std::size_t column) {
  return static_cast<std::uint64_t>(parse(row, column, 0));
}

long long signed_number(const Row& row, std::size_t column) { return parse(row, column, -kMost); }

const Row& first_row(const Answer& answer) {
  static const Row kNone;
  return answer.rows.empty() ? kNone : answer.rows.front();
}

std::uint64_t number_in(const Answer& answer) {
  if (answer.rows.size() != 1 || answer.rows.front().size() != 1) return 0;
  return number(answer.rows.front(), 0);
}

}  // namespace dlock::sql
