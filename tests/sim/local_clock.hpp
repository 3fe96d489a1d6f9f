// The clock of one simulated process: it runs at a speed of its own.
#pragma once

#include <cmath>

#include "util/clock.hpp"

namespace dlock::sim {

using Nanos = std::chrono::nanoseconds;

/// A clock that is `rate` times as fast as true time.
struct LocalClock {
  double rate = 1;
  Nanos offset{0};

  Deadline at(Nanos true_time) const {
    return Deadline(offset + scaled(static_cast<double>(true_time.count()) * rate));
  }
  /// When it shows `local`, or a little later.
  Nanos true_time(Deadline local) const {
    if (local == kNever) return Nanos::max();
    return scaled(
        std::ceil(static_cast<double>((local.time_since_epoch() - offset).count()) / rate));
  }

 private:
  static Nanos scaled(double nanos) { return Nanos(static_cast<Nanos::rep>(nanos)); }
};

}  // namespace dlock::sim
