// What a request asks of a lock, and which requests can use one lock at all.
#pragma once

#include <optional>
#include <string_view>

#include "core/result.hpp"

namespace dlock {

enum class Mode { exclusive, shared, slots };

/// "exclusive", "shared", "slots": as written in records, JSON and messages.
std::string_view mode_name(Mode mode);
std::optional<Mode> parse_mode(std::string_view name);

/// A mode, and in slots mode how many may hold at once.
struct Claim {
  Mode mode = Mode::exclusive;
  unsigned slots = 1;  // 1 in the other modes

  bool operator==(const Claim&) const = default;
};

/// Whether a request with one of these claims may wait for a holder with the other.  Slots mix with
/// slots of the same number only; exclusive and shared mix with each other.
bool modes_mix(Claim a, Claim b);

/// Errc::conflict: `key` is held with a claim that cannot be mixed with the one asked for.  Names
/// both.
Error mode_conflict(std::string_view key, Claim asked, Claim held);

}  // namespace dlock
