// What `dlock once` remembers: that the job of a key is done.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "core/owner.hpp"
#include "util/clock.hpp"

namespace dlock {

/// Marks of one key and different periods have nothing to do with each other.
struct MarkName {
  std::string key;     // of the lock under which it was done; passed check_key()
  std::string period;  // in which it is done once, as "2026-11-22": at most kMaxPeriodLength
                       // letters, digits and '-'; "" where it is done once for all
  bool operator==(const MarkName&) const = default;
  bool operator<(const MarkName& other) const {
    return std::tie(key, period) < std::tie(other.key, other.period);
  }
};

inline constexpr std::size_t kMaxPeriodLength = 16;
/// Whether it can be that of a MarkName.
bool is_period(std::string_view text);

/// Nothing is remembered for longer: 100 years.
inline constexpr Millis kLongestRemembered{36'525LL * 24 * 3'600'000};

/// What Lease::complete() is to remember, and for how long.
struct Completion {
  std::string period;  // of the MarkName; its key is that of the lock
  Millis remember{0};  // 1 or more, and at most kLongestRemembered
};

struct Mark {
  MarkName name;
  Owner owner;                         // who has done it
  std::optional<std::uint64_t> fence;  // of the grant under which it was done
  std::string done_at;                 // RFC 3339 in UTC, by the clock of who has done it
  Millis age{0};                       // by the service's own reckoning, as what follows
  Millis left{0};                      // until it is forgotten
};

/// The text of a record: one JSON object of at most kLongestMark bytes.  The mark ends `remember`
/// after it was written.
std::string format_mark(const Owner& owner, std::optional<std::uint64_t> fence, Millis remember);
inline constexpr std::size_t kLongestMark = 8'000;

struct MarkRecord {
  Owner owner;
  std::optional<std::uint64_t> fence;
  std::string done_at;
  Millis remember{0};
};
/// None for anything that format_mark() did not write.
std::optional<MarkRecord> parse_mark(std::string_view text);

/// Whether it is a mark of this owner, and so of this acquire(): an id is used once.
bool is_mark_by(std::string_view text, std::string_view owner_id);

}  // namespace dlock
