#include "cli/period.hpp"

#include <array>
#include <cstdio>

namespace dlock::cli {

// The first week of a year is the one with its first Thursday, so a week is of the year of its
// Thursday.  Not strftime(): it would read the time zone file.
std::string period_of(Every every, std::chrono::system_clock::time_point instant) {
  using namespace std::chrono;
  const auto day = floor<days>(instant);
  const auto thursday = day + (Thursday - Monday) - (weekday(day) - Monday);
  const year_month_day date(every == Every::week ? thursday : day);
  const auto new_year = sys_days(date.year() / January / 1);
  std::array<char, 32> out{};
  if (every == Every::week) {
    std::snprintf(out.data(), out.size(), "%04d-W%02d", static_cast<int>(date.year()),
                  static_cast<int>((thursday - new_year) / days{7}) + 1);
  } else {
    std::snprintf(out.data(), out.size(), "%04d-%02u-%02u", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  }
  std::string text = out.data();
  if (every != Every::hour) return text;
  std::snprintf(out.data(), out.size(), "T%02d",
                static_cast<int>(floor<hours>(instant - day) / hours{1}));
  return text + out.data();
}

Millis length_of(Every every) {
  using namespace std::chrono;
  switch (every) {
    case Every::hour:
      return hours{1};
    case Every::day:
      return days{1};
    case Every::week:
      break;
  }
  return weeks{1};
}

}  // namespace dlock::cli
