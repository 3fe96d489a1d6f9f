// Another time for a server: the handle of clock_shim.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/temp_dir.hpp"
#include "util/clock.hpp"

namespace dlock::test {

/// The time of the processes that were started with environment().  At first it is the right one;
/// what is set here holds in all of them from then on.  One thread at a time.
class FakeClock {
 public:
  FakeClock();

  /// Sets the wall clock forward, or back.
  void jump(Millis by);
  /// The same for the clocks that nobody can set: MONOTONIC and BOOTTIME.
  void jump_monotonic(Millis by);
  /// From now on all clocks go faster by so many millionths, or slower; 0 is right again, and
  /// what was gained stays.
  void drift(std::int64_t ppm);
  /// From now on the wall clock stands still, at this time since 1970.
  void stop_at(std::chrono::microseconds time);

  /// "NAME=value" for the environment of a process.
  std::vector<std::string> environment() const;

 private:
  void write();

  TempDir dir_;
  std::uint32_t version_ = 0;
  std::int64_t wall_ns_ = 0;
  std::int64_t monotonic_ns_ = 0;
  std::int64_t ppm_ = 0;
  std::int64_t since_ns_ = 0;
};

}  // namespace dlock::test
