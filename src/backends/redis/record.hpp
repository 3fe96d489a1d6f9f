// The record of a holder or a waiter, as it stands on the server; and the mode of a lock there.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/backend.hpp"

namespace dlock::redis {

struct Record {
  Owner owner;
  Mode mode = Mode::exclusive;
  unsigned slots = 1;
  std::string acquired_at;
  Millis ttl{0};
  Millis held{0};  // when it was written, with `ttl` to go: so no clocks need be compared
  std::optional<std::uint64_t> fence;
  std::optional<unsigned> slot;  // of slots, the number of this holder
  // On one of several servers:
  std::string servers;           // Cluster::list()
  std::optional<unsigned> node;  // its rank
};

/// The scripts look for the token at its end.
std::string format_record(const Record& record);
/// None for anything that format_record() did not write.
std::optional<Record> parse_record(std::string_view text);

/// "x", "s", "n3": what the scripts know.
std::string mode_text(Mode mode, unsigned slots);
Claim parse_mode_text(std::string_view text);

}  // namespace dlock::redis
