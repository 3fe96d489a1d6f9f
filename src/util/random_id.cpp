#include "util/random_id.hpp"

#include <sys/random.h>

#include <array>
#include <cstdlib>
#include <string_view>

namespace dlock::util {

std::string random_id() {
  std::array<unsigned char, 16> bytes{};
  // Requests of up to 256 bytes are never cut short (getrandom(2)).
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) std::abort();
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string id;
  for (const unsigned char byte : bytes) {
    id += kDigits[byte >> 4];
    id += kDigits[byte & 15];
  }
  return id;
}

}  // namespace dlock::util
