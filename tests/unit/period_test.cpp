#include "cli/period.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace dlock::cli {
namespace {

using namespace std::chrono;

std::string at(Every every, sys_seconds instant) { return period_of(every, instant); }

TEST(Period, IsTheHourDayOrWeekInUtc) {
  const sys_seconds instant = sys_days(2026y / November / 22) + 10h + 59min + 59s;
  EXPECT_EQ(at(Every::hour, instant), "2026-11-22T10");
  EXPECT_EQ(at(Every::hour, instant + 1s), "2026-11-22T11");
  EXPECT_EQ(at(Every::day, instant), "2026-11-22");
  EXPECT_EQ(at(Every::week, instant), "2026-W47");
}

TEST(Period, DoesNotDependOnTheTimeZone) {
  setenv("TZ", "Pacific/Kiritimati", 1);
  tzset();
  EXPECT_EQ(at(Every::hour, sys_days(2026y / November / 22) + 23h), "2026-11-22T23");
  unsetenv("TZ");
  tzset();
}

// ISO 8601: the days around New Year can belong to a week of the other year.
TEST(Period, WeeksBeginOnMondayAndBelongToTheYearOfTheirThursday) {
  const auto week = [](year_month_day date) { return at(Every::week, sys_days(date)); };
  EXPECT_EQ(week(2026y / November / 22), "2026-W47");  // a Sunday
  EXPECT_EQ(week(2026y / November / 23), "2026-W48");
  EXPECT_EQ(week(2021y / January / 3), "2020-W53");
  EXPECT_EQ(week(2021y / January / 4), "2021-W01");
  EXPECT_EQ(week(2024y / December / 29), "2024-W52");
  EXPECT_EQ(week(2024y / December / 30), "2025-W01");
  EXPECT_EQ(week(2023y / January / 1), "2022-W52");
}

TEST(Period, LastsAsLongAsItSays) {
  for (const Every every : {Every::hour, Every::day, Every::week}) {
    const sys_seconds instant = sys_days(2026y / December / 31) + 22h;
    EXPECT_NE(period_of(every, instant), period_of(every, instant + length_of(every)));
    EXPECT_NE(period_of(every, instant), period_of(every, instant - length_of(every)));
  }
}

}  // namespace
}  // namespace dlock::cli
