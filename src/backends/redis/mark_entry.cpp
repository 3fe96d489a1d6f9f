#include "backends/redis/mark_entry.hpp"

#include <algorithm>
#include <charconv>

#include "util/text.hpp"

namespace dlock::redis {
namespace {

constexpr std::size_t kRankDigits = 20;  // of the largest fence
constexpr std::int64_t kLatestMs = 9'999'999'999'999'999;

std::optional<std::uint64_t> parse_fence(std::string_view digits) {
  std::uint64_t out = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), out);
  if (error != std::errc() || end != digits.end()) return std::nullopt;
  return out;
}

}  // namespace

std::string rank_of(const Entry& entry) {
  const std::string digits = std::to_string(entry.fence);
  return std::string(kRankDigits - digits.size(), '0') + digits + (entry.is_reset ? 'r' : 'd');
}

std::optional<Entry> parse_entry(std::string_view text, std::int64_t now) {
  if (text.size() < kRankDigits + 2 || text.size() > kLongestEntry) return std::nullopt;
  const char kind = text[kRankDigits];
  const auto fence = parse_fence(text.substr(0, kRankDigits));
  if (!fence || (kind != 'd' && kind != 'r') || text[kRankDigits + 1] != ' ') return std::nullopt;
  text.remove_prefix(kRankDigits + 2);
  const auto space = text.find(' ');
  const auto end = util::parse_int(text.substr(0, space), 0, kLatestMs);
  if (space == std::string_view::npos || !end) return std::nullopt;
  text.remove_prefix(space + 1);
  if (!parse_mark(text)) return std::nullopt;
  return Entry{.fence = *fence,
               .is_reset = kind == 'r',
               .left = std::min(Millis{*end - now}, kLongestKept),
               .record = std::string(text)};
}

Mark mark_in(const Entry& entry, const MarkName& name) {
  const MarkRecord record = parse_mark(entry.record).value_or(MarkRecord{});
  return {.name = name,
          .owner = record.owner,
          .fence = record.fence,
          .done_at = record.done_at,
          .age = std::max(record.remember - entry.left, Millis{0}),
          .left = entry.left};
}

}  // namespace dlock::redis
