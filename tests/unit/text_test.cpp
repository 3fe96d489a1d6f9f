#include "util/text.hpp"

#include <gtest/gtest.h>

#include <random>

namespace dlock::util {
namespace {

TEST(Text, KnowsUtf8) {
  for (const char* text : {"", "job", "jöb", "€", "😀", "\xC2\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_utf8(text)) << text;
  }
  for (const char* text : {"\x80", "\xC0\xAF", "\xC1\xBF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xFF",
                           "\xF4\x90\x80\x80", "\xE2\x82", "a\xC3", "\xF8\x88\x80\x80\x80"}) {
    EXPECT_FALSE(is_utf8(text));
  }
}

TEST(Text, ShowsNothingThatMovesACursorOrTurnsText) {
  EXPECT_EQ(printable("a\x1b[31mb\n\t\x7f"), "a\\x1b[31mb\\x0a\\x09\\x7f");
  EXPECT_EQ(printable("x\xE2\x80\xAEy"), "x\\u202ey");  // right-to-left override
  EXPECT_EQ(printable("\xC2\x9B"), "\\u009b");          // C1 CSI
  EXPECT_EQ(printable("\xFFz"), "\\xffz");
  EXPECT_EQ(printable("jöb 😀"), "jöb 😀");
}

TEST(Text, ShowsJsonThatMeansTheSame) {
  EXPECT_EQ(printable_json("{\n  \"a\": \"\\u001b é\"\n}"), "{\n  \"a\": \"\\u001b é\"\n}");
  EXPECT_EQ(printable_json("\"\x7f\u009b\u202e\U000E0041\""),
            "\"\\u007f\\u009b\\u202e\\udb40\\udc41\"");
}

TEST(Text, CutsAQuotedTextBetweenCharacters) {
  EXPECT_EQ(in_quotes("job"), "\"job\"");
  EXPECT_EQ(in_quotes("aaaöö", 4), "\"aaa...\"");
}

TEST(Text, PercentEncodingIsReversibleAndHasNoSpecialNames) {
  EXPECT_EQ(percent_encode("a b/ö%~"), "a%20b%2F%C3%B6%25%7E");
  EXPECT_EQ(percent_encode(".."), "%2E.");
  EXPECT_EQ(percent_encode("v1.2"), "v1.2");
  std::mt19937 random(7);
  for (int i = 0; i < 2'000; ++i) {
    std::string text;
    for (auto n = random() % 40; n > 0; --n)
      text += static_cast<char>(static_cast<unsigned char>(random() % 256));
    EXPECT_EQ(percent_decode(percent_encode(text)), text);
  }
  EXPECT_EQ(percent_decode("%4"), std::nullopt);
  EXPECT_EQ(percent_decode("%zz"), std::nullopt);
}

TEST(Text, ReadsWholeNumbersOnly) {
  EXPECT_EQ(parse_int("255", 0, 255), 255);
  EXPECT_EQ(parse_int("007", 0, 255), 7);
  EXPECT_EQ(parse_int("-0", -1, 255), 0);
  EXPECT_EQ(parse_int("-1", -1, 255), -1);
  for (const char* text : {"", "256", "-1", "x", "1x", " 1", "0x1", "99999999999999999999"}) {
    EXPECT_EQ(parse_int(text, 0, 255), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace dlock::util
