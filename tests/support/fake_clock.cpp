#include "support/fake_clock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <stdexcept>

#include "util/fd.hpp"

namespace dlock::test {
namespace {
std::int64_t nanos(Millis time) { return std::chrono::nanoseconds(time).count(); }
}  // namespace

FakeClock::FakeClock() { write(); }

void FakeClock::jump(Millis by) {
  wall_ns_ += nanos(by);
  write();
}

void FakeClock::jump_monotonic(Millis by) {
  monotonic_ns_ += nanos(by);
  write();
}

void FakeClock::drift(std::int64_t ppm) {
  const std::int64_t now = Clock::now().time_since_epoch().count();
  const std::int64_t gained = (now - since_ns_) / 1'000 * ppm_ / 1'000;
  wall_ns_ += gained;
  monotonic_ns_ += gained;
  ppm_ = ppm;
  since_ns_ = now;
  write();
}

void FakeClock::stop_at(std::chrono::microseconds time) {
  constexpr std::int64_t kStandsStill = -1'000'000;
  wall_ns_ = std::chrono::nanoseconds(time).count();
  ppm_ = kStandsStill;
  write();
}

std::vector<std::string> FakeClock::environment() const {
  return {"LD_PRELOAD=" TEST_CLOCK_SHIM, "CLOCK_SHIM=" + dir_.path() + "/clock"};
}

void FakeClock::write() {
  std::array<char, 128> text;
  ++version_;
  const int size = std::snprintf(text.data(), text.size(),
                                 "%010" PRIu32 " %+020" PRId64 " %+020" PRId64 " %+020" PRId64
                                 " %+020" PRId64 " %010" PRIu32 "\n",
                                 version_, wall_ns_, monotonic_ns_, ppm_, since_ns_, version_);
  const std::string path = dir_.path() + "/clock";
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (::write(fd.get(), text.data(), static_cast<std::size_t>(size)) != size) {
    throw std::runtime_error("cannot write " + path);
  }
}

}  // namespace dlock::test
