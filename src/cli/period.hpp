// The periods of --every.
#pragma once

#include <chrono>
#include <string>

#include "util/clock.hpp"

namespace dlock::cli {

/// In UTC, whatever the time zone, so that it is the same on all machines.  Weeks are those of ISO
/// 8601: they begin on Monday.
enum class Every { hour, day, week };

/// The period of this instant: "2026-11-22T10", "2026-11-22" or "2026-W47".
std::string period_of(Every every, std::chrono::system_clock::time_point instant);

/// The length of a period.
Millis length_of(Every every);

}  // namespace dlock::cli
