#include "backends/redis/look.hpp"

#include <algorithm>

#include "backends/redis/record.hpp"

namespace dlock::redis {
namespace {

// Whose it is, as far as what it left there tells.
std::string foreign_kind(std::string_view type, std::string_view value) {
  if (type == "hash" && value.find(':') != std::string_view::npos) return "redisson";
  if (type == "string" && value.starts_with("ADDED:")) return "shedlock";
  return "redis " + std::string(type);
}

LockInfo::Holder holder_of(const Reply& answer, const std::string& type) {
  LockInfo::Holder holder;
  const std::string& value = answer.at(0).text;
  const std::int64_t left = answer.at(1).number(-1);
  if (left >= 0) holder.expires = Millis{left};
  const auto record = parse_record(answer.at(2).text);
  if (!record || record->owner.id != value) {
    holder.owner.id = value;
    holder.foreign = foreign_kind(type, value) + (holder.expires ? "" : " that never expires");
    return holder;
  }
  holder.owner = record->owner;
  holder.acquired_at = record->acquired_at;
  holder.fence = record->fence;
  // Each renewal writes both; a lock that somebody made endless tells nothing.
  if (holder.expires) {
    holder.held = std::max(record->held + record->ttl - *holder.expires, Millis{0});
  }
  return holder;
}

LockInfo::Waiter waiter_of(const Reply& answer) {
  LockInfo::Waiter waiter;
  if (const auto record = parse_record(answer.at(2).text)) waiter.owner = record->owner;
  waiter.mode = parse_mode_text(answer.at(0).text).mode;
  waiter.waiting = Millis{std::max<std::int64_t>(answer.at(1).number(), 0)};
  return waiter;
}

}  // namespace

LockInfo lock_info(std::string_view key, const Reply& answer) {
  LockInfo info{.key = std::string(key)};
  const std::string& type = answer.at(0).text;
  const ModeAndSlots held = parse_mode_text(answer.at(2).text);
  info.mode = held.mode;
  info.slots = held.slots;
  for (const Reply& holder : answer.at(3).items) info.holders.push_back(holder_of(holder, type));
  info.waiters.emplace();
  for (const Reply& waiter : answer.at(4).items) info.waiters->push_back(waiter_of(waiter));
  return info;
}

}  // namespace dlock::redis
