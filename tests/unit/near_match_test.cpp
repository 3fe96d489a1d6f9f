#include "util/near_match.hpp"

#include <gtest/gtest.h>

#include <array>

namespace dlock::util {
namespace {

constexpr std::array<std::string_view, 7> kWords{"run",  "once", "renew",        "release",
                                                 "list", "show", "force-release"};

TEST(NearMatch, IsTheWordWithTheFewestWrongLetters) {
  EXPECT_EQ(near_match("rnu", kWords), "run");     // swapped
  EXPECT_EQ(near_match("lst", kWords), "list");    // missing
  EXPECT_EQ(near_match("listt", kWords), "list");  // too many
  EXPECT_EQ(near_match("shaw", kWords), "show");   // wrong
  EXPECT_EQ(near_match("force_relase", kWords), "force-release");
  EXPECT_EQ(near_match("renwe", kWords), "renew");
  EXPECT_EQ(near_match("run", kWords), "run");
}

TEST(NearMatch, IsAWordThatBeginsSo) {
  EXPECT_EQ(near_match("rel", kWords), "release");
  EXPECT_EQ(near_match("force", kWords), "force-release");
}

TEST(NearMatch, IsNoneForAnotherWord) {
  for (const std::string_view word : {"", "x", "kubectl", "unlock", "re", "onion"}) {
    EXPECT_EQ(near_match(word, kWords), "") << word;
  }
  EXPECT_EQ(near_match(std::string(100'000, 'a'), kWords), "");
}

}  // namespace
}  // namespace dlock::util
