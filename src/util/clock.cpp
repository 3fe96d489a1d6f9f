#include "util/clock.hpp"

#include <ctime>

namespace dlock {

Clock::time_point Clock::now() noexcept {
  timespec ts{};
  clock_gettime(CLOCK_BOOTTIME, &ts);
  return time_point(std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec));
}

Millis since(Deadline instant) {
  return std::chrono::duration_cast<Millis>(Clock::now() - instant);
}

Millis remaining(Deadline deadline, Deadline now) {
  if (deadline <= now) return Millis{0};
  return std::chrono::ceil<Millis>(deadline - now);
}

}  // namespace dlock
