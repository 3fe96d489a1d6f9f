// What they write, as read in their sources:
//   redis-py       string  uuid.uuid1().hex                          Lock.acquire
//   node-redlock   string  randomBytes(16) in hex                    4.x and 5.x
//   redsync        string  16 bytes in base64
//   redislock      string  16 bytes in unpadded base64url            bsm/redislock
//   redlock-py     string  22 letters and digits
//   Symfony        string  32 bytes in base64                        before 5.2
//                  zset    the same -> when it expires, in ms; and "__write__" if exclusive
//   ShedLock       string  ADDED:<time>@<host>
//   Redisson       hash    <uuid of the client>:<thread> -> how often it has locked it; and
//                          "mode" -> "read" or "write", where the writer's field ends in ":write"
// Nobody signs a value, so this is for people to read; what is done to a lock does not hang on it.
#include "backends/redis/foreign.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <string>

#include "util/text.hpp"

namespace dlock::redis {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kHex = "0123456789abcdef";
constexpr std::string_view kAlphanumeric =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

bool all_in(std::string_view text, std::string_view characters, std::string_view more = {}) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return characters.find(c) != std::string_view::npos || more.find(c) != std::string_view::npos;
  });
}

/// `length` characters of base64, and then the padding that goes with it.
bool is_base64(std::string_view text, std::size_t length, std::string_view padding) {
  return text.size() == length + padding.size() && text.ends_with(padding) &&
         all_in(text.substr(0, length), kAlphanumeric, "+/");
}

// A UUID of version 1 in hex has its time, in 100 ns since 1582-10-15, as low, middle, high part.
bool is_uuid1(std::string_view hex) {
  if (hex[12] != '1' || std::string_view("89ab").find(hex[16]) == std::string_view::npos) {
    return false;
  }
  const std::string digits =
      std::string(hex.substr(13, 3)).append(hex.substr(8, 4)) + std::string(hex.substr(0, 8));
  std::uint64_t time = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), time, 16);
  constexpr std::uint64_t kSecond = 10'000'000;
  constexpr std::uint64_t kEpoch = 12'219'292'800 * kSecond;         // 1970
  constexpr std::uint64_t kFrom = kEpoch + 1'262'304'000 * kSecond;  // 2010
  constexpr std::uint64_t kTo = kEpoch + 4'133'980'800 * kSecond;    // 2101
  return time >= kFrom && time < kTo;
}

std::string_view kind_of_string(std::string_view value) {
  if (value.size() == 32 && all_in(value, kHex)) {
    return is_uuid1(value) ? "redis-py" : "node-redlock";
  }
  if (value.size() == 22 && all_in(value, kAlphanumeric)) return "redlock-py";
  if (value.size() == 22 && all_in(value, kAlphanumeric, "-_")) return "redislock";
  if (is_base64(value, 22, "==")) return "redsync";
  if (is_base64(value, 43, "=")) return "symfony";
  if (value.starts_with("ADDED:") && value.find('@') != std::string_view::npos) return "shedlock";
  return "unknown";
}

// <uuid>:<thread> or <uuid>:<thread>:write
bool is_redisson(std::string_view field) {
  constexpr std::array<std::size_t, 4> kDashes{8, 13, 18, 23};
  constexpr std::size_t kUuid = 36;
  if (field.size() <= kUuid || field[kUuid] != ':') return false;
  for (std::size_t i = 0; i < kUuid; ++i) {
    const bool dash = std::find(kDashes.begin(), kDashes.end(), i) != kDashes.end();
    if (dash ? field[i] != '-' : kHex.find(field[i]) == std::string_view::npos) return false;
  }
  std::string_view thread = field.substr(kUuid + 1);
  if (thread.ends_with(":write")) thread.remove_suffix(6);
  if (thread.starts_with('-')) thread.remove_prefix(1);
  return !thread.empty() && all_in(thread, kDigits);
}

// RFC 3339 in UTC: 2026-01-31T23:59:59Z, perhaps with a fraction of up to nine digits.
bool is_utc_time(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd";
  if (text.size() <= kShape.size() || text.back() != 'Z') return false;
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    const bool digit = kDigits.find(text[i]) != std::string_view::npos;
    if (kShape[i] == 'd' ? !digit : text[i] != kShape[i]) return false;
  }
  const std::string_view rest = text.substr(kShape.size(), text.size() - kShape.size() - 1);
  if (!rest.empty() &&
      (rest[0] != '.' || rest.size() < 2 || rest.size() > 10 || !all_in(rest.substr(1), kDigits))) {
    return false;
  }
  const auto number = [&](std::size_t at, std::size_t length) {
    return static_cast<int>(*util::parse_int(text.substr(at, length), 0, 9999));
  };
  const std::chrono::year_month_day day{std::chrono::year(number(0, 4)),
                                        std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                        std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  return day.ok() && number(11, 2) < 24 && number(14, 2) < 60 && number(17, 2) <= 60;
}

}  // namespace

LockInfo::Holder foreign_holder(std::string_view type, std::string_view text,
                                std::string_view count) {
  LockInfo::Holder holder{.foreign = "unknown"};
  if (type == "string") {
    holder.owner.id = text;
    holder.foreign = kind_of_string(text);
    if (holder.foreign == "shedlock") {
      text.remove_prefix(std::string_view("ADDED:").size());
      const std::string_view time = text.substr(0, text.find('@'));
      if (is_utc_time(time)) holder.acquired_at = time;
      holder.owner.host = text.substr(time.size() + 1);
    }
  } else if (type == "hash") {
    // A field without a count has the same name whoever holds it.
    const auto times = util::parse_int(count, 0, INT64_MAX);
    if (is_redisson(text)) {
      holder.foreign = "redisson";
      if (times) holder.owner.label = "hold count " + std::to_string(*times);
    }
    if (times || holder.foreign == "redisson") holder.owner.id = text;
  } else if (type == "zset") {
    holder.owner.id = text;
    if (is_base64(text, 43, "=")) holder.foreign = "symfony";
  }
  return holder;
}

}  // namespace dlock::redis
