#include "util/duration.hpp"

#include <gtest/gtest.h>

namespace dlock::util {
namespace {

TEST(Duration, ReadsWhatPeopleWrite) {
  EXPECT_EQ(parse_duration("0"), Millis{0});
  EXPECT_EQ(parse_duration("0.5"), Millis{500});
  EXPECT_EQ(parse_duration("0.29"), Millis{290});
  EXPECT_EQ(parse_duration("90s"), Millis{90'000});
  EXPECT_EQ(parse_duration("250ms"), Millis{250});
  EXPECT_EQ(parse_duration("1h30m"), Millis{5'400'000});
  EXPECT_EQ(parse_duration("1.5h"), Millis{5'400'000});
  EXPECT_EQ(parse_duration("2d"), Millis{172'800'000});
  EXPECT_EQ(parse_duration(".5s"), Millis{500});
}

TEST(Duration, RoundsAPositiveOneUpToAMillisecond) {
  EXPECT_EQ(parse_duration("0.0001"), Millis{1});
  EXPECT_EQ(parse_duration("0.0101"), Millis{11});
}

TEST(Duration, RefusesEverythingElse) {
  for (const char* text : {"", " ", "5x", "-1", "+1", "1h30", "nan", "inf", "1e9", "1e9h", "1 s",
                           "h", ".", "1.2.3", "999999999999999999999", "36526d", "1s ", "1m-1s"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(Duration, IsShownInTwoUnits) {
  EXPECT_EQ(format_duration(Millis{850}), "850ms");
  EXPECT_EQ(format_duration(Millis{1'500}), "1.5s");
  EXPECT_EQ(format_duration(Millis{2'050}), "2s");
  EXPECT_EQ(format_duration(Millis{12'900}), "12s");
  EXPECT_EQ(format_duration(Millis{130'000}), "2m10s");
  EXPECT_EQ(format_duration(Millis{185 * 60'000}), "3h05m");
  EXPECT_EQ(format_duration(Millis{98 * 3'600'000}), "4d02h");
  EXPECT_EQ(format_duration(Millis{-5}), "0ms");
}

}  // namespace
}  // namespace dlock::util
