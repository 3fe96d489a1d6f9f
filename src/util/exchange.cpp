#include "util/exchange.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "util/log.hpp"

namespace dlock::util {
namespace {

constexpr std::string_view kOfIds = "0123456789abcdef-";  // some have dashes
constexpr std::size_t kDigits = 32;
constexpr std::size_t kShown = 12;

// The whole id of a grant is all that is needed to release it.
std::string with_short_ids(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t digits = std::min(text.find_first_not_of(kOfIds), text.size());
    out += digits < kDigits ? text.substr(0, digits) : text.substr(0, kShown);
    if (digits >= kDigits) out += "...";
    text.remove_prefix(digits);
    const std::size_t rest = std::min(text.find_first_of(kOfIds), text.size());
    out += text.substr(0, rest);
    text.remove_prefix(rest);
  }
  return out;
}

std::string time_since(Clock::time_point sent) {
  const std::chrono::duration<double, std::milli> took = Clock::now() - sent;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), ", %.1f ms", took.count());
  return text.data();
}

}  // namespace

bool exchanges_shown() { return log_shows(Level::trace); }

void log_exchange(std::string_view server, std::string_view request, std::string_view outcome,
                  std::optional<Clock::time_point> sent) {
  if (!exchanges_shown()) return;
  const std::string head = std::string(server) + ": ";
  std::string end(outcome);
  if (const auto at = end.find(head); at != std::string::npos) end.erase(at, head.size());
  log(Level::trace,
      with_short_ids(head + std::string(request) + " -> " + end) + (sent ? time_since(*sent) : ""));
}

}  // namespace dlock::util
