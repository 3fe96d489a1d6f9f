#include "core/checks.hpp"

#include <algorithm>
#include <cstdlib>

#include "util/duration.hpp"

namespace dlock {
namespace {

constexpr Millis kMostClockError{1'000};
constexpr int kFewDays = 14;

}  // namespace

void RoundTrips::add(Clock::duration time) {
  best = count == 0 ? time : std::min(best, time);
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
