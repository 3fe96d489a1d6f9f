// The fence.  A number once given must never come again, also not after a power failure, and a sync
// for each grant would cost a job more than everything else here.  So numbers are reserved in
// blocks: `reserved` is on the disk before a number above the old one is given, and `fence`, which
// is not synced, counts inside the block.  After a crash the boot id differs, and counting goes on
// above `reserved`.
//
// Records come from files that others may have written: sizes are capped, wrong types are ignored.
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
constexpr std::uint64_t kBlock = 1'000;
// Above this somebody else has written the number: leave room to count.
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

std::string format_header(const Header& header) {
  std::array<char, kHeaderSize + 1> out{};
  std::snprintf(out.data(), out.size(), "dlock1 %020llu %020llu %36.36s %-9.9s %010u\n",
                static_cast<unsigned long long>(header.fence),
                static_cast<unsigned long long>(header.reserved), header.boot.c_str(),
                std::string(mode_name(header.mode)).c_str(), header.slots);
  return {out.data(), kHeaderSize};
}

std::optional<Header> parse_header(std::string_view text) {
  if (text.size() < kHeaderSize || !text.starts_with(kMagic)) return std::nullopt;
  const std::string whole(text.substr(0, kHeaderSize));
  text = text.substr(0, kHeaderSize);
  text.remove_prefix(kMagic.size());
  const auto fence = parse_number(take(text, 20));
  const auto reserved = parse_number(take(text, 20));
  const std::string_view boot = take(text, 36);
  std::string_view mode_text = take(text, 9);
  const auto slots = parse_number(text.substr(0, 10));
  while (mode_text.ends_with(' ')) mode_text.remove_suffix(1);
  const auto mode = parse_mode(mode_text);
  if (!fence || !reserved || !mode || !slots) return std::nullopt;
  if (*fence > *reserved || *reserved > kMostFence || *slots == 0 || *slots > UINT32_MAX) {
    return std::nullopt;
  }
  Header header{*fence, *reserved, std::string(boot), *mode, static_cast<unsigned>(*slots)};
  if (format_header(header) != whole) return std::nullopt;
  return header;
}

NextGrant next_grant(const std::optional<Header>& last, const std::string& boot, Mode mode,
                     unsigned slots) {
  NextGrant next{.header = last.value_or(Header{})};
  Header& header = next.header;
  // A boot without a name (all dashes) is never the same one.
  if (header.boot != boot || boot.starts_with('-')) header.fence = header.reserved;
  ++header.fence;
  if (header.fence > header.reserved) {
    header.reserved = header.fence - 1 + kBlock;
    next.sync = true;
  }
  header.boot = boot;
  header.mode = mode;
  header.slots = slots;
  return next;
}

std::string format_record(const Record& record) {
  json object = owner_to_json(record.owner);
  object.update({{"mode", mode_name(record.mode)},
                 {"slots", record.slots},
                 {"acquired_at", record.acquired_at},
                 {"boot", record.boot},
                 {"acquired_ns", record.acquired_ns},
                 {"pid_namespace", record.pid_namespace},
                 {"lock_pid", record.lock_pid},
                 {"main_pid", record.main_pid}});
  if (record.fence) object["fence"] = *record.fence;
  return one_line(object) + '\n';
}

std::optional<Record> parse_record(std::string_view text) {
  Record record;
  std::string line(text.substr(0, std::min(text.size(), kMostRead)));
  record.given_up = line.starts_with(kGivenUp);
  const bool ended = line.starts_with(kCommandEnded);
  if (record.given_up || ended) line[0] = '{';
  const auto object = object_of(line);
  if (!object) return std::nullopt;
  const auto mode = parse_mode(text_of(*object, "mode"));
  const std::int64_t slots = number_of(*object, "slots");
  record.owner = owner_from_json(*object);
  record.owner.ended = ended;
  if (ended) record.owner.pid = 0;
  if (!mode || record.owner.id.empty() || slots < 1 || slots > UINT32_MAX) return std::nullopt;
  record.mode = *mode;
  record.slots = static_cast<unsigned>(slots);
  record.acquired_at = text_of(*object, "acquired_at");
  record.boot = text_of(*object, "boot");
  record.acquired_ns = std::max<std::int64_t>(number_of(*object, "acquired_ns"), 0);
  record.pid_namespace = static_cast<std::uint64_t>(number_of(*object, "pid_namespace"));
  record.lock_pid = static_cast<pid_t>(number_of(*object, "lock_pid"));
  record.main_pid = static_cast<pid_t>(number_of(*object, "main_pid"));
  if (const std::int64_t fence = number_of(*object, "fence"); fence > 0) {
    record.fence = static_cast<std::uint64_t>(fence);
  }
  return record;
}

std::string format_note(const Note& note) {
  return one_line({{"revoked", note.revoked}, {"why", cut_text(note.why)}}) + '\n';
}

std::optional<Note> find_note(std::string_view text, std::string_view owner_id) {
  for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    if (const auto object = object_of(text)) {
      Note note{text_of(*object, "revoked"), text_of(*object, "why")};
      if (note.revoked == owner_id) return note;
    }
    text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

}  // namespace dlock::file
