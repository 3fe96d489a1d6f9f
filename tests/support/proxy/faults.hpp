// What a proxy does to what goes through it, and what it has seen.
#pragma once

#include <cstdint>
#include <string>

#include "util/clock.hpp"

namespace dlock::test {

struct Faults {
  Millis delay_requests{0};
  Millis delay_replies{0};
  std::size_t chunk = 0;  // bytes of a reply at a time; 0: as they come
  std::size_t most = 0;   // connections at a time; 0: any number
  bool hold = false;
  bool drop = false;
  bool blackhole = false;

  std::string lose_text;  // of the requests whose reply is lost
  long lose_skip = 0;     // so many of them are spared first
  long lose_count = 0;    // so many are left to lose; less than 0: all
};

struct Counters {
  long accepted = 0;
  long lost_replies = 0;
  std::uint64_t request_bytes = 0;
};

/// How a connection ends for the client.
enum class Cut { rst, fin };

}  // namespace dlock::test
