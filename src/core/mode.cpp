#include "core/mode.hpp"

#include <array>
#include <string>

#include "util/text.hpp"

namespace dlock {
namespace {

constexpr std::array<std::string_view, 3> kModeNames{"exclusive", "shared", "slots"};

// The option, or "" for none.
std::string option_of(Claim claim) {
  if (claim.mode == Mode::slots) return "--slots " + std::to_string(claim.slots);
  return claim.mode == Mode::shared ? "--shared" : "";
}

}  // namespace

std::string_view mode_name(Mode mode) { return kModeNames[static_cast<std::size_t>(mode)]; }

std::optional<Mode> parse_mode(std::string_view name) {
  for (std::size_t i = 0; i < kModeNames.size(); ++i) {
    if (kModeNames[i] == name) return static_cast<Mode>(i);
  }
  return std::nullopt;
}

bool modes_mix(Claim a, Claim b) {
  if (a.mode != Mode::slots && b.mode != Mode::slots) return true;
  return a == b;
}

Error mode_conflict(std::string_view key, Claim asked, Claim held) {
  const std::string theirs = option_of(held);
  const std::string ours = option_of(asked);
  return {Errc::conflict, util::in_quotes(std::string(key)) + " is in use " +
                              (theirs.empty() ? "as an exclusive lock" : "with " + theirs) +
                              ", and you asked for " + (ours.empty() ? "an exclusive lock" : ours) +
                              "; " + (theirs.empty() ? "leave " + ours + " out" : "use " + theirs) +
                              ", or another key"};
}

}  // namespace dlock
