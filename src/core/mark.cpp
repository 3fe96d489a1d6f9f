#include "core/mark.hpp"

#include <algorithm>

#include "core/owner_json.hpp"
#include "util/host.hpp"

namespace dlock {
namespace {

// Of each text of the owner: six bytes of JSON can stand for one.
constexpr std::size_t kMostText = 200;

void cut(std::string& text) { text.resize(std::min(text.size(), kMostText)); }

}  // namespace

bool is_period(std::string_view text) {
  return text.size() <= kMaxPeriodLength && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                  c == '-';
         });
}

std::string format_mark(const Owner& owner, std::optional<std::uint64_t> fence, Millis remember) {
  Owner cut_owner = owner;
  for (std::string* text : {&cut_owner.host, &cut_owner.user, &cut_owner.command}) cut(*text);
  if (cut_owner.label) cut(*cut_owner.label);
  nlohmann::json object = owner_to_json(cut_owner);
  object.update(
      {{"done_at", util::utc_now()}, {"remember_ms", remember.count()}, {"dlock", DLOCK_VERSION}});
  if (fence) object["fence"] = *fence;
  return one_line(object);
}

std::optional<MarkRecord> parse_mark(std::string_view text) {
  if (text.empty() || text.size() > kLongestMark) return std::nullopt;
  const auto object = parse_object(text);
  if (!object || text_of(*object, "dlock").empty()) return std::nullopt;
  MarkRecord record{.owner = owner_from_json(*object), .done_at = text_of(*object, "done_at")};
  record.remember = Millis{number_of(*object, "remember_ms")};
  const bool is_long = record.remember > kLongestRemembered;
  if (record.owner.id.empty() || record.remember <= Millis{0} || is_long) return std::nullopt;
  const auto fence = object->find("fence");
  if (fence != object->end() && fence->is_number_unsigned()) {
    record.fence = fence->get<std::uint64_t>();
  }
  return record;
}

bool is_mark_by(std::string_view text, std::string_view owner_id) {
  const auto record = parse_mark(text);
  return record && record->owner.id == owner_id;
}

}  // namespace dlock
