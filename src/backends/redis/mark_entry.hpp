// What one server keeps of a mark of `dlock once`: pure text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/mark.hpp"

namespace dlock::redis {

/// On the server "RANK END RECORD": the fence with 20 digits and 'd' (done) or 'r' (reset), so that
/// the scripts compare ranks as texts; when its time is over, in ms of the server's clock; and what
/// format_mark() wrote.  The key may stay longer than that (put() in entry.lua).
struct Entry {
  std::uint64_t fence = 0;  // of the grant; 0: none is known
  bool is_reset = false;    // the mark of this fence is forgotten; lower ones do not count either
  Millis left{0};           // 0 or less: its time is over; lower ones do not count all the same
  std::string record;

  /// Of the entries that several servers have under one name, the highest counts.
  bool is_higher_than(const Entry& other) const {
    return fence != other.fence ? fence > other.fence : is_reset > other.is_reset;
  }
  bool is_same_as(const Entry& other) const {
    return fence == other.fence && is_reset == other.is_reset;
  }
};

/// Nothing is remembered for longer, whatever is asked for: 100 years.
inline constexpr Millis kLongestKept{36'525LL * 24 * 3'600'000};
/// No entry has more bytes.
inline constexpr std::size_t kLongestEntry = kLongestMark + 64;

std::string rank_of(const Entry& entry);

/// `now`: the server's clock, in ms.  None for what dlock did not write.
std::optional<Entry> parse_entry(std::string_view text, std::int64_t now);

/// The mark that an entry is, unless it is a reset.
Mark mark_in(const Entry& entry, const MarkName& name);

}  // namespace dlock::redis
