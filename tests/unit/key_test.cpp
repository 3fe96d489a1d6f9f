#include "core/key.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dlock {
namespace {

using namespace std::string_literals;

TEST(Key, MayBeAnyPlainUtf8) {
  for (const std::string& key : {"j"s, "job 1"s, "../x"s, "a/b"s, "*?[x]"s, "';--"s, "jöb"s, "%41"s,
                                 "{a}b"s, "~"s, std::string(255, 'k')}) {
    EXPECT_TRUE(check_key(key)) << key;
  }
}

TEST(Key, IsRefusedWithTheFaultNamed) {
  const auto fault = [](const std::string& key) { return check_key(key).error().message; };
  EXPECT_EQ(fault(""), "the key is empty");
  EXPECT_NE(fault(std::string(256, 'k')).find("256 bytes"), std::string::npos);
  EXPECT_EQ(fault("a\nb"), "key \"a\\x0ab\": holds a control character");
  EXPECT_NE(fault("a\0b"s).find("control character"), std::string::npos);
  EXPECT_NE(fault("a\xC2\x85").find("control character"), std::string::npos);
  EXPECT_NE(fault("a\xFF").find("not valid UTF-8"), std::string::npos);
}

}  // namespace
}  // namespace dlock
