// What several texts for the server have in common.
#pragma once

#include <string>
#include <string_view>

#include "backends/mysql/schema.hpp"

namespace dlock::mysql {

/// What the marks of holders and of waiters begin with; the id of the owner follows.
inline constexpr std::string_view kHolderMark = "dlock.h.";
inline constexpr std::string_view kWaiterMark = "dlock.w.";

/// The time of the server, and the same in milliseconds since 1970.
inline constexpr std::string_view kNow = "UTC_TIMESTAMP(6)";
inline constexpr std::string_view kNowMs =
    "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)";

/// The session that has the mark of a row of the table of locks; NULL: it has ended.
inline std::string mark_of_row(std::string_view prefix) {
  return "IS_USED_LOCK(CONCAT('" + std::string(prefix) + "', owner))";
}

inline std::string kind_is(Kind kind) { return "kind = " + std::to_string(static_cast<int>(kind)); }

}  // namespace dlock::mysql
