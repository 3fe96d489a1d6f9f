// The fence is one more than the last one, and at least the microseconds since 1970.  So it also
// grows if the file is deleted or truncated, or if its content is lost in a power failure: a grant
// takes longer than a microsecond, so the clock is ahead of each number that was granted.  The file
// is synced only if its number is ahead of the clock, which happens if the clock was set back.
//
// Other users may have written the records: sizes are limited, wrong types are ignored.
#include "backends/file/record.hpp"

#include <array>
#include <charconv>
#include <cstdio>

#include "core/owner_json.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

using nlohmann::json;

constexpr std::string_view kMagic = "dlock1 ";
// In microseconds: a machine takes longer to boot.
constexpr std::uint64_t kReboot = 1'000'000;
// In place of the id of the boot, which earlier versions wrote.
constexpr std::string_view kNoBoot = "------------------------------------";
// A larger number was not written by dlock, and would leave no room to count.
constexpr std::uint64_t kMostFence = std::uint64_t{1} << 62;

std::optional<std::uint64_t> parse_number(std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// Takes `width` bytes and the separator behind them.
std::string_view take(std::string_view& text, std::size_t width) {
  const std::string_view field = text.substr(0, width);
  text.remove_prefix(width + 1);
  return field;
}

// The object on the first line of `text`, which must be complete.
std::optional<json> object_of(std::string_view text) {
  const auto end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  return parse_object(text.substr(0, end));
}

}  // namespace

// Earlier versions counted in the first number up to the second one, which was on the disk, and
// after another boot went on above the second.
std::string format_header(const Header& header) {
  std::array<char, kLockHeaderSize + 1> out{};
  const auto fence = static_cast<unsigned long long>(header.fence);
  std::snprintf(out.data(), out.size(), "dlock1 %020llu %020llu %s %-9.9s %010u\n", fence, fence,
                kNoBoot.data(), std::string(mode_name(header.mode)).c_str(), header.slots);
  return {out.data(), kLockHeaderSize};
}

std::optional<Header> parse_header(std::string_view text) {
  if (text.size() < kLockHeaderSize || !text.starts_with(kMagic)) return std::nullopt;
  std::string whole(text.substr(0, kLockHeaderSize));
  text = text.substr(0, kLockHeaderSize);
  text.remove_prefix(kMagic.size());
  const auto counted = parse_number(take(text, 20));
  const auto fence = parse_number(take(text, 20));
  text.remove_prefix(37);  // the boot
  std::string_view mode_text = take(text, 9);
  const auto slots = parse_number(text.substr(0, 10));
  while (mode_text.ends_with(' ')) mode_text.remove_suffix(1);
  const auto mode = parse_mode(mode_text);
  if (!counted || !fence || !mode || !slots) return std::nullopt;
  if (*counted > *fence || *fence > kMostFence || *slots == 0 || *slots > UINT32_MAX) {
    return std::nullopt;
  }
  const Header header{*fence, *mode, static_cast<unsigned>(*slots)};
  whole.replace(kMagic.size(), 20, whole.substr(kMagic.size() + 21, 20));
  whole.replace(kMagic.size() + 42, kNoBoot.size(), kNoBoot);
  if (format_header(header) != whole) return std::nullopt;
  return header;
}

NextGrant next_grant(const std::optional<Header>& last, std::uint64_t now_us, Mode mode,
                     unsigned slots) {
  const std::uint64_t fence = std::max((last ? last->fence : 0) + 1, now_us);
  return {.header = {fence, mode, slots}, .sync = fence > now_us + kReboot};
}

std::string format_record(const Record& record) {
  json object = owner_to_json(record.owner);
  object.update({
      {"mode", mode_name(record.mode)},
      {"slots", record.slots},
      {"since_ns", record.since_ns},
  });
  if (!record.acquired_at.empty()) object["acquired_at"] = record.acquired_at;
  if (record.fence) object["fence"] = *record.fence;
  if (record.slot) object["slot"] = *record.slot;
  return one_line(object) + '\n';
}

std::optional<Record> parse_record(std::string_view text) {
  const auto object = object_of(text.substr(0, kMostRead));
  if (!object) return std::nullopt;
  const auto mode = parse_mode(text_of(*object, "mode"));
  const std::int64_t slots = number_of(*object, "slots");
  Record record;
  record.owner = owner_from_json(*object);
  if (!mode || record.owner.id.empty() || slots < 1 || slots > UINT32_MAX) return std::nullopt;
  record.mode = *mode;
  record.slots = static_cast<unsigned>(slots);
  record.since_ns = std::max<std::int64_t>(number_of(*object, "since_ns"), 0);
  record.acquired_at = text_of(*object, "acquired_at");
  if (const std::int64_t fence = number_of(*object, "fence"); fence > 0) {
    record.fence = static_cast<std::uint64_t>(fence);
  }
  if (const std::int64_t slot = number_of(*object, "slot"); slot > 0 && slot <= slots) {
    record.slot = static_cast<unsigned>(slot);
  }
  return record;
}

std::string format_revocation(std::string_view why) {
  return one_line({{"revoked_by", cut_text(why)}}) + '\n';
}

std::optional<std::string> parse_revocation(std::string_view text) {
  const auto object = object_of(text);
  if (!object || !object->contains("revoked_by")) return std::nullopt;
  return text_of(*object, "revoked_by");
}

}  // namespace dlock::file
