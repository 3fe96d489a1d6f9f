// What several texts for the server have in common.
#pragma once

#include <string>
#include <string_view>

#include "backends/mysql/schema.hpp"
#include "backends/mysql/sql.hpp"
#include "util/clock.hpp"

namespace dlock::mysql {

/// The time of the server, and the same in milliseconds since 1970.
inline constexpr std::string_view kNow = "UTC_TIMESTAMP(6)";
inline constexpr std::string_view kNowMs =
    "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)";

/// The time of the server that much later.
inline std::string from_now(Millis time) {
  return std::string(kNow) + " + INTERVAL " + std::to_string(time.count() * 1'000) + " MICROSECOND";
}

/// True of a primary.  Since MariaDB 11.8 the variable is a word, before and elsewhere a number.
inline constexpr std::string_view kWritable = "CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF')";

/// In place of a method, of the records that all methods share.
inline constexpr const char* kNumbers = "0";

/// A boolean expression, true of one row of the table of records.  `name`: a literal.
inline std::string is_record(const std::string& method, const std::string& name,
                             std::string_view period) {
  return "method = " + method + " AND name = " + name + " AND period = " + literal(period);
}

/// A statement that writes that row, if `condition` is true.  `verb`: REPLACE or INSERT IGNORE.
inline std::string add_record(const std::string& verb, const std::string& table,
                              const std::string& method, const std::string& name,
                              std::string_view period, std::string_view text,
                              const std::string& condition) {
  return verb + " INTO " + table + " (method, name, period, written_at, record) SELECT " + method +
         ", " + name + ", " + literal(period) + ", " + std::string(kNow) + ", " + literal(text) +
         " FROM (SELECT 1) AS one WHERE " + condition;
}

inline std::string kind_is(Kind kind) { return "kind = " + std::to_string(static_cast<int>(kind)); }

}  // namespace dlock::mysql
