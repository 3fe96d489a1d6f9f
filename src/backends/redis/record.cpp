#include "backends/redis/record.hpp"

#include <algorithm>

#include "core/owner_json.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

constexpr std::size_t kMostRead = 64 * 1024;         // whatever is longer was not written by us
constexpr std::int64_t kMostMs = 1'000'000'000'000;  // 30 years; sums of these do not overflow

}  // namespace

std::string format_record(const Record& record) {
  nlohmann::json object = owner_to_json(record.owner);
  object.update({{"mode", mode_name(record.mode)},
                 {"slots", record.slots},
                 {"acquired_at", record.acquired_at},
                 {"ttl_ms", record.ttl.count()},
                 {"held_ms", record.held.count()},
                 {"dlock", DLOCK_VERSION}});
  std::string out = one_line(object);
  out.pop_back();
  if (record.slot) out += ",\"slot\":" + std::to_string(*record.slot);
  if (record.node) {
    out += ",\"servers\":\"" + record.servers + "\",\"node\":" + std::to_string(*record.node);
  }
  if (record.fence) out += ",\"fence\":" + std::to_string(*record.fence);
  return out + '}';
}

std::optional<Record> parse_record(std::string_view text) {
  if (text.empty() || text.size() > kMostRead) return std::nullopt;
  const auto object = parse_object(text);
  if (!object) return std::nullopt;
  Record record{.owner = owner_from_json(*object)};
  const auto mode = parse_mode(text_of(*object, "mode"));
  const std::int64_t slots = number_of(*object, "slots");
  if (!mode || record.owner.id.empty() || slots < 1 || slots > UINT32_MAX) return std::nullopt;
  record.mode = *mode;
  record.slots = static_cast<unsigned>(slots);
  record.acquired_at = text_of(*object, "acquired_at");
  record.ttl = Millis{std::clamp<std::int64_t>(number_of(*object, "ttl_ms"), 0, kMostMs)};
  record.held = Millis{std::clamp<std::int64_t>(number_of(*object, "held_ms"), 0, kMostMs)};
  if (const std::int64_t fence = number_of(*object, "fence"); fence > 0) {
    record.fence = static_cast<std::uint64_t>(fence);
  }
  const std::int64_t slot = number_of(*object, "slot");
  if (*mode == Mode::slots && slot >= 1 && slot <= slots) {
    record.slot = static_cast<unsigned>(slot);
  }
  record.servers = text_of(*object, "servers");
  return record;
}

std::string mode_text(Mode mode, unsigned slots) {
  if (mode == Mode::slots) return 'n' + std::to_string(slots);
  return mode == Mode::shared ? "s" : "x";
}

Claim parse_mode_text(std::string_view text) {
  if (text.starts_with('s')) return {Mode::shared, 1};
  if (!text.starts_with('n')) return {};
  const auto slots = util::parse_int(text.substr(1), 1, UINT32_MAX);
  return {Mode::slots, static_cast<unsigned>(slots.value_or(1))};
}

}  // namespace dlock::redis
