// The three methods share the table, and so the numbers.
//
// A counter is one row, and taking numbers is one statement: on a Galera cluster, a COMMIT that
// collides with another is refused, and the statement is said again.
//
// The workers are one row, too.  It is read, and written only if nobody has written it since: so a
// process that is stopped in between holds no lock, and keeps nobody waiting.
#include "backends/mysql/numbers.hpp"

#include "backends/mysql/clauses.hpp"
#include "backends/mysql/extra_table.hpp"
#include "backends/mysql/schema.hpp"
#include "backends/mysql/sql.hpp"
#include "util/text.hpp"

namespace dlock::mysql {
namespace {

constexpr std::string_view kCounter = "1";
constexpr std::string_view kWorkersRow = "2";

std::string table_of(const Place& place) { return Tables(place.prefix).ids; }

// A column of a row of one answer, up to the largest number of a counter.
std::optional<std::uint64_t> value_in(const Answer& answer, std::size_t column) {
  if (answer.rows.size() != 1 || column >= answer.rows[0].size() || !answer.rows[0][column]) {
    return std::nullopt;
  }
  const auto number = util::parse_int(*answer.rows[0][column], 0, INT64_MAX);
  return number ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
}

Error not_ours(const Place& place) {
  return not_a_counter(place.shown + ": table " + table_of(place));
}

}  // namespace

// LAST_INSERT_ID(x) is the way of the server's manual to get a number out of an UPDATE.  It is 0 at
// the end if there are not so many left, and if the table is of another engine.  The SELECT is
// carried out in any case, also where there is a row.
Result<std::uint64_t> take_numbers(const Say& say, const Place& place, std::string_view name,
                                   std::uint64_t count) {
  const std::string value = table_of(place) + ".value";
  const std::string some = std::to_string(count);
  const auto answer = say_with_table(
      say, place, ids_table(place.prefix),
      "DO LAST_INSERT_ID(0); INSERT INTO " + table_of(place) +
          " (kind, name, value, ends) SELECT " + std::string(kCounter) + ", " + literal(name) +
          ", LAST_INSERT_ID(" + some +
          "), '' FROM (SELECT 1) AS one WHERE @dlock_fit = 1 ON DUPLICATE KEY UPDATE value = IF(" +
          value + " <= " + std::to_string(kLastNumber - count) + ", LAST_INSERT_ID(" + value +
          " + " + some + "), " + value + " + LAST_INSERT_ID(0)); SELECT LAST_INSERT_ID()");
  if (!answer) return answer.error();
  const auto last = value_in(answer.value(), 0);
  if (!last) return not_ours(place);
  if (*last < count) return counter_is_full(name);
  return *last - count + 1;
}

Result<IdWindow> lease_window(const Say& say, const Place& place, Millis length,
                              Deadline deadline) {
  const std::string table = table_of(place);
  const std::string is_row = "kind = " + std::string(kWorkersRow) + " AND name = ''";
  do {
    const auto found = say_with_table(say, place, ids_table(place.prefix),
                                      "SELECT " + std::string(kNowMs) +
                                          ", value, ends FROM (SELECT 1) AS one LEFT JOIN " +
                                          table + " ON " + is_row);
    if (!found) return found.error();
    const auto now = value_in(found.value(), 0);
    if (!now || found.value().rows[0].size() != 3) return not_ours(place);
    const Row& row = found.value().rows[0];
    const bool is_new = !row[1];
    const auto version = is_new ? 0U : value_in(found.value(), 1);
    auto ends = parse_worker_ends(row[2].value_or(""));
    if (!ends || !version) return not_ours(place);
    auto window = take_window(*ends, static_cast<std::int64_t>(*now), length, place.shown);
    if (!window) return window;
    const std::string text = literal(format_worker_ends(*ends));
    const auto written =
        say(is_new ? "INSERT IGNORE INTO " + table + " (kind, name, value, ends) VALUES (" +
                         std::string(kWorkersRow) + ", '', 1, " + text + ")"
                   : "UPDATE " + table + " SET value = value + 1, ends = " + text + " WHERE " +
                         is_row + " AND value = " + std::to_string(*version));
    if (!written) return written.error();
    if (written.value().ok() && written.value().answers.back().affected == 1) return window;
  } while (Clock::now() < deadline);
  return Error{Errc::unreachable,
               place.shown + ": too many others take snowflake ids at this moment"};
}

}  // namespace dlock::mysql
