#include "backends/redis/look.hpp"

#include <algorithm>

#include "backends/redis/foreign.hpp"
#include "backends/redis/record.hpp"

namespace dlock::redis {
namespace {

void add_time_left(LockInfo::Holder& holder, const Reply& ms) {
  const std::int64_t left = ms.number(-2);
  if (left >= 0) holder.expires = Millis{left};
  holder.endless = ms.kind == Reply::Kind::integer && left == -1;
}

LockInfo::Holder foreign_of(const Reply& answer, const std::string& type) {
  LockInfo::Holder holder = foreign_holder(type, answer.at(0).text, answer.at(2).text);
  add_time_left(holder, answer.at(1));
  return holder;
}

// A grant; or an offer, of which the waiter comes first.
void add_ours(LockInfo& info, const Reply& answer, const std::string& type) {
  const std::string& id = answer.at(0).text;
  const std::int64_t left = answer.at(1).number(-1);
  LockInfo::Holder holder =
      holder_of(type, id, answer.at(2).text, left < 0 ? std::nullopt : std::optional(Millis{left}));
  if (!holder.foreign && is_offer(id)) {
    info.waiters->push_back(
        {.owner = std::move(holder.owner), .mode = info.mode, .is_offered = true});
  } else {
    info.holders.push_back(std::move(holder));
  }
}

bool all_are(const std::vector<LockInfo::Holder>& holders, std::string_view kind) {
  return std::all_of(holders.begin(), holders.end(),
                     [&](const LockInfo::Holder& holder) { return holder.foreign == kind; });
}

// Redisson's: each field is a holder.  Of any other hash nobody knows what is a holder, and which
// fields would have to go.
void add_fields(LockInfo& info, const std::vector<Reply>& fields, const std::string& mode) {
  for (const Reply& field : fields) info.holders.push_back(foreign_of(field, "hash"));
  if (all_are(info.holders, "redisson")) {
    if (mode == "read") info.mode = Mode::shared;
  } else if (info.holders.size() > 1 || !mode.empty()) {
    info.holders.resize(1);
    info.holders[0] = foreign_holder("hash", "");
    add_time_left(info.holders[0], fields[0].at(1));
  }
}

// Symfony's: each member is a holder, but for the one that says that there is only one.
void add_members(LockInfo& info, const std::vector<Reply>& members) {
  bool exclusive = false;
  for (const Reply& member : members) {
    if (member.at(0).text == "__write__") {
      exclusive = true;
    } else {
      info.holders.push_back(foreign_of(member, "zset"));
    }
  }
  if (info.holders.empty() && exclusive) {  // something is there all the same
    info.holders.push_back(foreign_holder("zset", ""));
    add_time_left(info.holders[0], members[0].at(1));
  }
  if (all_are(info.holders, "symfony") && !exclusive) info.mode = Mode::shared;
}

LockInfo::Waiter waiter_of(const Reply& answer) {
  LockInfo::Waiter waiter;
  if (const auto record = parse_record(answer.at(2).text)) waiter.owner = record->owner;
  waiter.mode = parse_mode_text(answer.at(0).text).mode;
  waiter.waiting = Millis{std::max<std::int64_t>(answer.at(1).number(), 0)};
  return waiter;
}

}  // namespace

LockInfo::Holder holder_of(std::string_view type, const std::string& id, const std::string& record,
                           std::optional<Millis> left) {
  const auto found = parse_record(record);
  const bool is_ours = found && found->owner.id == id;
  LockInfo::Holder holder =
      is_ours ? LockInfo::Holder{.owner = found->owner} : foreign_holder(type, id);
  holder.expires = left;
  holder.endless = !left;
  if (!is_ours) return holder;
  holder.acquired_at = found->acquired_at;
  holder.fence = found->fence;
  holder.slot = found->slot;
  holder.servers = found->servers;
  // Each renewal writes both; a lock that somebody made endless tells nothing.
  holder.ttl = found->ttl;
  if (left) holder.held = std::max(found->held + found->ttl - *left, found->held);
  return holder;
}

LockInfo lock_info(std::string_view key, const Reply& answer) {
  LockInfo info{.key = std::string(key), .waiters = std::vector<LockInfo::Waiter>()};
  const std::string& type = answer.at(0).text;
  const std::string& mode = answer.at(2).text;
  const std::vector<Reply>& found = answer.at(3).items;
  if (type == "hash") {
    add_fields(info, found, mode);
  } else if (type == "zset" && mode.empty()) {
    add_members(info, found);
  } else {
    const Claim held = parse_mode_text(mode);
    info.mode = held.mode;
    info.slots = held.slots;
    for (const Reply& holder : found) add_ours(info, holder, type);
  }
  for (const Reply& waiter : answer.at(4).items) info.waiters->push_back(waiter_of(waiter));
  return info;
}

}  // namespace dlock::redis
