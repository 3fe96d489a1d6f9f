#include "core/checks.hpp"

#include <algorithm>
#include <cstdlib>

#include "util/duration.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

constexpr Millis kMostClockError{1'000};
constexpr int kFewDays = 14;

}  // namespace

void Told::add_lines(std::string_view text, std::string_view separators) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto end = std::min(line.find_first_of(separators), line.size());
    const auto value = line.find_first_not_of(std::string(separators) + ' ', end);
    if (value < line.size()) add(std::string(line.substr(0, end)), std::string(line.substr(value)));
  }
}

std::string Told::operator()(const std::string& name) const {
  constexpr std::size_t kMost = 100;
  const auto found = values_.find(name);
  return found == values_.end() ? "" : util::clipped(found->second, kMost);
}

void RoundTrips::add(Clock::duration time) {
  if (is_fastest(time)) best = time;
  worst = std::max(worst, time);
  ++count;
}

Seen RoundTrips::seen(Millis ttl) const {
  return {in_ms(best) + " to " + in_ms(worst) + " in " + std::to_string(count) + " tries",
          worst > ttl / 10 ? Severity::warn : Severity::ok};
}

Seen clock_seen(Millis ahead) {
  const Millis off{std::abs(ahead.count())};
  if (off <= kMostClockError) return {"agrees with the clock of this machine"};
  return {util::format_duration(off) + (ahead > Millis{0} ? " ahead of" : " behind") +
              " the clock of this machine",
          Severity::warn};
}

Seen certificate_seen(int days_left) {
  return {"TLS; the certificate ends in " + std::to_string(days_left) + " days",
          days_left < kFewDays ? Severity::warn : Severity::ok};
}

std::string with_client(std::string_view fix, const std::string& client) {
  std::string out(fix);
  for (auto at = out.find("{}"); at != std::string::npos; at = out.find("{}", at + client.size())) {
    out.replace(at, 2, client);
  }
  return out;
}

}  // namespace dlock
