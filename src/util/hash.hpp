// A hash that never changes.
#pragma once

#include <cstdint>
#include <string_view>

namespace dlock::util {

/// FNV-1a of 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/).  Not against an attacker.
constexpr std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 0xCBF29CE484222325;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return h;
}

}  // namespace dlock::util
