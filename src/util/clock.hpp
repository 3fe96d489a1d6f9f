// Time for deadlines: CLOCK_BOOTTIME, which nobody sets and which counts suspend.
#pragma once

#include <chrono>

namespace dlock {

/// A chrono clock over CLOCK_BOOTTIME.  Every deadline of dlock is an instant of this clock; the
/// wall clock is for showing times to people only.
struct Clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept;
};

using Millis = std::chrono::milliseconds;

/// When to stop trying: an instant, never a duration, so that it can be handed down through retries
/// and helpers without anybody subtracting what has been used up.
using Deadline = Clock::time_point;
inline constexpr Deadline kNever = Deadline::max();

/// `from` + `duration`, or kNever where that is too far away to be told.
constexpr Deadline after(Deadline from, Millis duration) {
  return kNever - from <= duration ? kNever : from + duration;
}

/// How long ago that was, in whole milliseconds.
Millis since(Deadline instant);

/// What is left until `deadline`, rounded up to whole milliseconds; zero once it has passed.
Millis remaining(Deadline deadline, Deadline now = Clock::now());

}  // namespace dlock
