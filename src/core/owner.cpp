#include "core/owner.hpp"

#include <array>

namespace dlock {
namespace {

constexpr std::array<std::string_view, 3> kKindNames{"run", "acquire", "once"};

}  // namespace

std::string_view kind_name(Owner::Kind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

std::optional<Owner::Kind> parse_kind(std::string_view name) {
  for (std::size_t i = 0; i < kKindNames.size(); ++i) {
    if (kKindNames[i] == name) return static_cast<Owner::Kind>(i);
  }
  return std::nullopt;
}

}  // namespace dlock
