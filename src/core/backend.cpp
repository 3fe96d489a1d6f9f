#include "core/backend.hpp"

#include <array>

namespace dlock {
namespace {

constexpr std::array<std::string_view, 3> kModeNames{"exclusive", "shared", "slots"};

}  // namespace

std::string_view mode_name(Mode mode) { return kModeNames[static_cast<std::size_t>(mode)]; }

std::optional<Mode> parse_mode(std::string_view name) {
  for (std::size_t i = 0; i < kModeNames.size(); ++i) {
    if (kModeNames[i] == name) return static_cast<Mode>(i);
  }
  return std::nullopt;
}

}  // namespace dlock
