// The numbers of `dlock id`: what they are made of, and what is the same in every backend.
//
// A snowflake id has 63 bits: 41 of milliseconds since 2025-01-01 UTC, 10 of a worker number, 12 of
// a counter.  An id can occur twice only if two callers use the same millisecond with the same
// worker number.  So the service keeps, for each worker number, the end of the last window that was
// leased, and never leases a window of that worker that starts before it.  Clocks decide which
// window is leased, and nothing else: a wrong clock, a pause or a kill can waste ids, never repeat
// one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/records.hpp"
#include "util/clock.hpp"

namespace dlock {

/// The last number of a counter: what the signed 64-bit integers of databases and languages hold.
inline constexpr std::uint64_t kLastNumber = INT64_MAX;

inline constexpr std::int64_t kIdEpochMs = 1'735'689'600'000;  // 2025-01-01 UTC, since 1970
inline constexpr std::int64_t kLastIdMs = (std::int64_t{1} << 41) - 1;
inline constexpr unsigned kWorkers = 1'024;
inline constexpr std::uint64_t kIdsPerMs = 4'096;
/// A window that starts this much later than the service's clock is refused.
inline constexpr Millis kMostAhead{5'000};

/// The ids of `worker` from the millisecond `start` (since 2025) until before `end`.
struct IdWindow {
  unsigned worker = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
};

/// How long a window for so many ids is.
Millis window_length(std::uint64_t count);

/// The id number `index` of a window, from 0.
std::uint64_t snowflake_id(const IdWindow& window, std::uint64_t index);

/// Until when each worker number is used, in ms since 2025; those that are missing at the end were
/// never used.
using WorkerEnds = std::vector<std::int64_t>;

/// Of the record of the workers: "" if none was ever used.  None if `text` is something else.
std::string format_worker_ends(const WorkerEnds& ends);
std::optional<WorkerEnds> parse_worker_ends(std::string_view text);

/// Takes the window of `length` that starts first, and notes its end in `ends`.  `now_ms` is the
/// time of the service since 1970; `service` is its name, for messages.
/// Errc::busy: it would start more than kMostAhead later than now.  Errc::invalid: after 2094.
Result<IdWindow> take_window(WorkerEnds& ends, std::int64_t now_ms, Millis length,
                             std::string_view service);

// See Backend.  Two round trips each, and more if others take numbers at the same time.
Result<std::uint64_t> take_numbers(Records& records, std::string_view name, std::uint64_t count,
                                   Deadline deadline);
Result<IdWindow> lease_window(Records& records, std::string_view service, Millis length,
                              Deadline deadline);

}  // namespace dlock
