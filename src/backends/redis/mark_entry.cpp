#include "backends/redis/mark_entry.hpp"

#include <algorithm>

#include "util/text.hpp"

namespace dlock::redis {
namespace {

constexpr std::size_t kRankDigits = 20;  // of the largest fence
constexpr std::int64_t kLatestMs = 9'999'999'999'999'999;

}  // namespace

std::string rank_of(std::uint64_t fence) {
  const std::string digits = std::to_string(fence);
  return std::string(kRankDigits - digits.size(), '0') + digits + 'd';
}

std::optional<Entry> parse_entry(std::string_view text, std::int64_t now) {
  if (text.size() < kRankDigits + 2 || text.size() > kLongestEntry) return std::nullopt;
  const char kind = text[kRankDigits];
  const bool has_rank = text.find_first_not_of("0123456789") == kRankDigits;
  if (!has_rank || (kind != 'd' && kind != 'r') || text[kRankDigits + 1] != ' ')
    return std::nullopt;
  text.remove_prefix(kRankDigits + 2);
  const auto space = text.find(' ');
  const auto end = util::parse_int(text.substr(0, space), 0, kLatestMs);
  if (space == std::string_view::npos || !end) return std::nullopt;
  text.remove_prefix(space + 1);
  if (!parse_mark(text)) return std::nullopt;
  return Entry{.is_forgotten = kind == 'r',
               .left = std::min(Millis{*end - now}, kLongestKept),
               .record = std::string(text)};
}

std::optional<Mark> mark_in(const Entry& entry, const MarkName& name) {
  if (entry.is_forgotten || entry.left <= Millis{0}) return std::nullopt;
  const MarkRecord record = parse_mark(entry.record).value_or(MarkRecord{});
  return Mark{.name = name,
              .owner = record.owner,
              .fence = record.fence,
              .done_at = record.done_at,
              .age = std::max(record.remember - entry.left, Millis{0}),
              .left = entry.left};
}

}  // namespace dlock::redis
