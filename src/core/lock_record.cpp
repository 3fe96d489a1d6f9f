#include "core/lock_record.hpp"

#include "core/owner_json.hpp"

namespace dlock {
namespace {

constexpr std::size_t kMostRead = 64 * 1024;  // whatever is longer was not written by us

}  // namespace

std::string format_lock_record(const Request& request) {
  nlohmann::json object = owner_to_json(request.owner);
  object.update({{"mode", mode_name(request.mode)},
                 {"slots", request.slots},
                 {"ttl_ms", request.ttl.count()},
                 {"dlock", DLOCK_VERSION}});
  return one_line(object);
}

std::optional<LockRecord> parse_lock_record(std::string_view text) {
  if (text.empty() || text.size() > kMostRead) return std::nullopt;
  const auto object = parse_object(text);
  if (!object || text_of(*object, "dlock").empty()) return std::nullopt;
  LockRecord record{owner_from_json(*object), std::nullopt};
  if (record.owner.id.empty()) return std::nullopt;
  record.ttl = ttl_of(*object, "ttl_ms");
  return record;
}

}  // namespace dlock
