// What one server keeps of a mark of `dlock once`: pure text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/mark.hpp"

namespace dlock::redis {

/// On the server "RANK END RECORD": the fence with 20 digits and 'd' (done) or 'r' (forgotten, see
/// forget.lua); when its time is over, in ms of the server's clock; and what format_mark() wrote.
struct Entry {
  bool is_forgotten = false;
  Millis left{0};  // 0 or less: its time is over
  std::string record;
};

/// Nothing is remembered for longer, whatever is asked for: 100 years.
inline constexpr Millis kLongestKept{36'525LL * 24 * 3'600'000};
/// No entry has more bytes.
inline constexpr std::size_t kLongestEntry = kLongestMark + 64;

/// Of a mark that is new; `fence`: 0 if none is known.
std::string rank_of(std::uint64_t fence);

/// `now`: the server's clock, in ms.  None for what dlock did not write.
std::optional<Entry> parse_entry(std::string_view text, std::int64_t now);

/// The mark that an entry is; none if it is forgotten, or its time is over.
std::optional<Mark> mark_in(const Entry& entry, const MarkName& name);

}  // namespace dlock::redis
