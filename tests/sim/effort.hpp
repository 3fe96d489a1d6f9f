// How much a simulation tries.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace dlock::sim {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

inline bool is_soak() {
  static const bool yes = std::getenv("TEST_SOAK") != nullptr;
  return yes;
}

/// The seed that the user wants to see; 0: all.
inline std::uint64_t wanted_seed() {
  const char* const text = std::getenv("TEST_SIM_SEED");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

}  // namespace dlock::sim
