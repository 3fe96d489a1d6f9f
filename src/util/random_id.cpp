#include "util/random_id.hpp"

#include <sys/random.h>

#include <array>
#include <cstdlib>
#include <string_view>

namespace dlock::util {
namespace {

template <class Bytes>
Bytes random_bytes() {
  Bytes bytes{};
  // Requests of up to 256 bytes are never cut short (getrandom(2)).
  if (getrandom(&bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) std::abort();
  return bytes;
}

}  // namespace

std::string random_id() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string id;
  for (const unsigned char byte : random_bytes<std::array<unsigned char, 16>>()) {
    id += kDigits[byte >> 4];
    id += kDigits[byte & 15];
  }
  return id;
}

unsigned random_seed() { return random_bytes<unsigned>(); }

}  // namespace dlock::util
