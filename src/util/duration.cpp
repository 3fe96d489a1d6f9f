#include "util/duration.hpp"

#include <array>
#include <cstdint>
#include <cstdio>

namespace dlock::util {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t millis;
};
constexpr std::array kUnits{
    Unit{"ms", 1},           Unit{"s", 1'000},         Unit{"m", 60'000},
    Unit{"h", 3'600'000},    Unit{"d", 86'400'000},    Unit{"sec", 1'000},
    Unit{"secs", 1'000},     Unit{"second", 1'000},    Unit{"seconds", 1'000},
    Unit{"min", 60'000},     Unit{"mins", 60'000},     Unit{"minute", 60'000},
    Unit{"minutes", 60'000}, Unit{"hour", 3'600'000},  Unit{"hours", 3'600'000},
    Unit{"day", 86'400'000}, Unit{"days", 86'400'000},
};

// A hundred years: far below what Clock can count, and more than anybody waits.
constexpr std::int64_t kLongest = 36'525LL * 86'400'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes "12.5" off the front of `text`.
std::optional<double> take_number(std::string_view& text) {
  std::size_t length = 0;
  bool digits = false;
  bool point = false;
  for (; length < text.size(); ++length) {
    if (is_digit(text[length])) {
      digits = true;
    } else if (text[length] == '.' && !point) {
      point = true;
    } else {
      break;
    }
  }
  if (!digits || length > 18) return std::nullopt;
  double value = 0;
  double scale = 1;
  bool fraction = false;
  for (const char c : text.substr(0, length)) {
    if (c == '.') {
      fraction = true;
    } else {
      value = value * 10 + (c - '0');
      if (fraction) scale *= 10;
    }
  }
  text.remove_prefix(length);
  return value / scale;
}

}  // namespace

std::optional<Millis> parse_duration(std::string_view text) {
  if (text.empty()) return std::nullopt;
  double total = 0;
  bool first = true;
  while (!text.empty()) {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    std::size_t length = 0;
    while (length < text.size() && !is_digit(text[length]) && text[length] != '.') ++length;
    const std::string_view name = text.substr(0, length);
    text.remove_prefix(length);
    if (name.empty() && !first) return std::nullopt;  // "1h30": thirty what?
    std::int64_t scale = 0;
    for (const Unit& unit : kUnits) {
      if (unit.name == (name.empty() ? "s" : name)) scale = unit.millis;
    }
    if (scale == 0) return std::nullopt;
    total += *number * static_cast<double>(scale);
    if (total > static_cast<double>(kLongest)) return std::nullopt;
    first = false;
  }
  // 0.29 s is 290.00000000000003 ms to a double: only a real fraction of a millisecond rounds up.
  // Not std::ceil: it would be all that dlock needs of libm, and loading that costs 0.1 ms.
  const double exact = total - 1e-6;
  const auto whole = static_cast<std::int64_t>(exact);
  return Millis{static_cast<double>(whole) < exact ? whole + 1 : whole};
}

std::string format_duration(Millis duration) {
  const std::int64_t ms = std::max<std::int64_t>(duration.count(), 0);
  const std::int64_t s = ms / 1'000;
  std::array<char, 48> out{};
  const auto two = [&](std::int64_t high, char high_unit, std::int64_t low, char low_unit) {
    if (low == 0) return std::to_string(high) + high_unit;
    std::snprintf(out.data(), out.size(), "%lld%c%02lld%c", static_cast<long long>(high), high_unit,
                  static_cast<long long>(low), low_unit);
    return std::string(out.data());
  };
  if (ms < 1'000) return std::to_string(ms) + "ms";
  if (ms < 10'000 && ms % 1'000 >= 100) {
    return std::to_string(s) + '.' + std::to_string(ms % 1'000 / 100) + 's';
  }
  if (s < 60) return std::to_string(s) + "s";
  if (s < 3'600) return two(s / 60, 'm', s % 60, 's');
  if (s < 86'400) return two(s / 3'600, 'h', s / 60 % 60, 'm');
  return two(s / 86'400, 'd', s / 3'600 % 24, 'h');
}

}  // namespace dlock::util
