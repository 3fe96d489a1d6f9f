// LD_PRELOAD: another time for a process.  The file that CLOCK_SHIM names says which, and can be
// written at any time; without it the time is right.  It is one line, 106 bytes, of numbers of
// fixed width, which FakeClock (C++) and new_clock (tests/cli/clock.sh) write:
//
//     VERSION WALL MONOTONIC PPM SINCE VERSION        %010u %+020d %+020d %+020d %+020d %010u\n
//
//     WALL       nanoseconds to add to CLOCK_REALTIME, gettimeofday(2) and time(2)
//     MONOTONIC  the same for CLOCK_MONOTONIC and CLOCK_BOOTTIME
//     PPM        how much faster than right all of them go, in millionths, since; -1000000: the
//     wall
//                clock stands still, and WALL is its time
//     SINCE      this true time of CLOCK_BOOTTIME, in nanoseconds
//     VERSION    another one each time: where the two differ, somebody is just writing
//
// Timeouts of system calls (poll, futex, timers) keep true time.
//
// It makes system calls only and allocates nothing: jemalloc, and so redis-server, asks for the
// time while it initializes itself, where dlsym(3) (which libfaketime uses) would need malloc.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

constexpr std::size_t kSize = 106;
constexpr std::size_t kVersionAtEnd = 95;
constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t number(const char* text) {
  const bool negative = *text == '-';
  if (*text == '-' || *text == '+') ++text;
  std::int64_t value = 0;
  for (; *text >= '0' && *text <= '9'; ++text) value = value * 10 + (*text - '0');
  return negative ? -value : value;
}

// The file, or null.  Two threads may both map it at first; that harms nobody.
const char* mapping() {
  static std::atomic<const char*> mapped{nullptr};
  static const char none = 0;
  const char* at = mapped.load(std::memory_order_acquire);
  if (at == nullptr) {
    at = &none;
    const char* path = std::getenv("CLOCK_SHIM");
    const int fd = path != nullptr ? ::open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
      void* memory = ::mmap(nullptr, kSize, PROT_READ, MAP_SHARED, fd, 0);
      if (memory != MAP_FAILED) at = static_cast<const char*>(memory);
      ::close(fd);
    }
    mapped.store(at, std::memory_order_release);
  }
  return at == &none ? nullptr : at;
}

struct Settings {
  std::int64_t wall, monotonic, ppm, since;
};

// A writer goes from the launcher to the back, so read the version at the back first.
Settings read_settings(const char* file) {
  char text[kSize];
  for (;;) {
    char version[10];
    std::memcpy(version, file + kVersionAtEnd, sizeof version);
    std::atomic_thread_fence(std::memory_order_acquire);
    std::memcpy(text, file, kSize);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (std::memcmp(file, version, sizeof version) == 0) break;
    ::sched_yield();
  }
  return {number(text + 11), number(text + 32), number(text + 53), number(text + 74)};
}

std::int64_t true_time(clockid_t clock) {
  timespec time{};
  ::syscall(SYS_clock_gettime, clock, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

constexpr std::int64_t kStandsStill = -1'000'000;

std::int64_t gained(const Settings& settings) {
  if (settings.ppm == 0 || settings.ppm == kStandsStill) return 0;
  return (true_time(CLOCK_BOOTTIME) - settings.since) / 1'000 * settings.ppm / 1'000;
}

std::int64_t wall_time() {
  const std::int64_t time = true_time(CLOCK_REALTIME);
  const char* file = mapping();
  if (file == nullptr) return time;
  const Settings settings = read_settings(file);
  if (settings.ppm == kStandsStill) return settings.wall;
  return time + settings.wall + gained(settings);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* out) noexcept {
  const long status = ::syscall(SYS_clock_gettime, clock, out);  // sets errno
  if (status != 0) return -1;
  const bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  const bool monotonic = clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE ||
                         clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME;
  const char* file = wall || monotonic ? mapping() : nullptr;
  if (file == nullptr) return 0;
  std::int64_t time = 0;
  if (wall) {
    time = wall_time();
  } else {
    const Settings settings = read_settings(file);
    time = out->tv_sec * kSecond + out->tv_nsec + gained(settings) + settings.monotonic;
  }
  out->tv_sec = time / kSecond;
  out->tv_nsec = time % kSecond;
  return 0;
}

int gettimeofday(timeval* __restrict out, void* __restrict zone) noexcept {
  const std::int64_t time = wall_time();
  out->tv_sec = time / kSecond;
  out->tv_usec = time % kSecond / 1'000;
  if (zone != nullptr) *static_cast<struct timezone*>(zone) = {0, 0};
  return 0;
}

time_t time(time_t* out) noexcept {
  const time_t now = wall_time() / kSecond;
  if (out != nullptr) *out = now;
  return now;
}

}  // extern "C"
