// Durations as people write and read them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "util/clock.hpp"

namespace dlock::util {

/// Reads `0.5`, `90s`, `250ms`, `1h30m`, `2d`, `5min`; a bare number means seconds.  Rounds up to
/// whole milliseconds, so that a positive duration stays positive.  None for anything else: empty,
/// signs, `5x`, `nan`, `1e9`, and what is longer than a hundred years.
std::optional<Millis> parse_duration(std::string_view text);

/// `2m10s`, `3h05m`, `20m`, `4d02h`, `850ms`, `1.5s`, `12s`: two units at most, for tables and
/// messages.
std::string format_duration(Millis duration);

}  // namespace dlock::util
