#include "util/width.hpp"

#include <gtest/gtest.h>

namespace dlock::util {
namespace {

TEST(Width, WideCharactersCountTwiceAndCombiningOnesNot) {
  EXPECT_EQ(display_width(""), 0U);
  EXPECT_EQ(display_width("job"), 3U);
  EXPECT_EQ(display_width("\xC3\xA4"), 1U);
  EXPECT_EQ(display_width("e\xCC\x81"), 1U);
  EXPECT_EQ(display_width("\xE6\x97\xA5\xE6\x9C\xAC"), 4U);
  EXPECT_EQ(display_width("\xFF\xFE"), 2U);  // whatever it is, it ends
}

TEST(Width, WhatIsCutFitsAndEndsBetweenCharacters) {
  EXPECT_EQ(cut_to_width("abcdef", 6), "abcdef");
  EXPECT_EQ(cut_to_width("abcdefg", 6), "abcde…");
  EXPECT_EQ(cut_to_width("\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E\xE8\xAA\x9E", 7), "日本語…");
  EXPECT_EQ(cut_to_width("\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E\xE8\xAA\x9E", 6), "日本…");
  EXPECT_EQ(cut_to_width("abcdefg", 2), "a…");
  EXPECT_EQ(cut_to_width("abcdefg", 0), "");
}

}  // namespace
}  // namespace dlock::util
