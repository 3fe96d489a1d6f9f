// What several texts for the server have in common.
#pragma once

#include <string>
#include <string_view>

#include "backends/mysql/schema.hpp"
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

inline std::string kind_is(Kind kind) { return "kind = " + std::to_string(static_cast<int>(kind)); }

}  // namespace dlock::mysql
