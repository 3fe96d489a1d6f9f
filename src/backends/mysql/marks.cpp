#include "backends/mysql/marks.hpp"

#include <algorithm>
#include <cstdint>

#include "backends/mysql/clauses.hpp"
#include "backends/mysql/sql.hpp"

namespace dlock::mysql {
namespace {

constexpr std::string_view kSessionMark = "dlock.s.";
constexpr std::string_view kRowMark = "dlock.r.";

constexpr std::size_t kLongestName = 64;  // in characters

// MySQL refuses any other name (3057); an owner that somebody else has written may make one.
bool is_name(std::string_view mark) {
  return mark.size() <= kLongestName &&
         std::all_of(mark.begin(), mark.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

std::string holder_mark(std::string_view owner) { return std::string(kHolderMark) += owner; }
std::string waiter_mark(std::string_view owner) { return std::string(kWaiterMark) += owner; }
std::string session_mark(std::string_view owner) { return std::string(kSessionMark) += owner; }
std::string row_mark(std::string_view owner) { return std::string(kRowMark) += owner; }

Marks Marks::of_cluster(std::string is_over) {
  Marks marks;
  marks.is_over_ = std::move(is_over);
  return marks;
}

std::string Marks::is_expired() const {
  return on_cluster() ? is_over_ : "expires_at <= " + std::string(kNow);
}

std::string Marks::time_left() const {
  const std::string left = "TIMESTAMPDIFF(MICROSECOND, " + std::string(kNow) + ", expires_at)";
  return on_cluster() ? "IF(" + is_over_ + ", 0, " + left + ")" : left;
}

std::string Marks::of_row(std::string_view prefix) const {
  if (on_cluster()) return "IF(" + is_over_ + ", NULL, 0)";
  // Any bytes are a name in latin1: see is_name().
  return "IS_USED_LOCK(CONCAT('" + std::string(prefix) + "', CONVERT(LEFT(owner, " +
         std::to_string(kLongestName - prefix.size()) + ") USING latin1)))";
}

std::string Marks::is_own(std::string_view prefix) const {
  return on_cluster() ? "TRUE" : of_row(prefix) + " = CONNECTION_ID()";
}

std::string Marks::session(const std::string& mark) const {
  return on_cluster() || !is_name(mark) ? "NULL" : "IS_USED_LOCK(" + literal(mark) + ")";
}

std::string Marks::get(const std::string& mark, const std::string& seconds) const {
  return on_cluster() ? "1" : "GET_LOCK(" + literal(mark) + ", " + seconds + ")";
}

// Never a negative time: MySQL would wait without end, and MariaDB would answer NULL.
std::string Marks::get(const std::string& mark, Millis wait) const {
  return get(mark, std::to_string(std::max<std::int64_t>((wait.count() + 999) / 1'000, 0)));
}

// Once, however often it is said: RELEASE_LOCK undoes one GET_LOCK only.
std::string Marks::have(const std::string& mark, Millis wait) const {
  if (on_cluster()) return "TRUE";
  const std::string seconds = wait == Millis{0} ? "0" : std::to_string(wait.count()) + "e-3";
  return "(" + session(mark) + " = CONNECTION_ID() OR " + get(mark, seconds) + " = 1)";
}

std::string Marks::release(const std::string& mark) const {
  return on_cluster() || !is_name(mark) ? "0" : "RELEASE_LOCK(" + literal(mark) + ")";
}

std::string Marks::take(const std::string& mark) const { return "SELECT " + have(mark) + "; "; }

// MariaDB would not tell of a deadlock after DO.
std::string Marks::wait_for(const std::string& mark, Millis wait) const {
  return "SELECT IF(" + get(mark, wait) + " = 1, " + release(mark) + ", 0); ";
}

std::string Marks::take_over(std::string_view owner, Millis wait) const {
  return "SELECT " + get(session_mark(owner), wait) + " = 1";
}

}  // namespace dlock::mysql
