#include <gtest/gtest.h>

#include "backends/sql/statements.hpp"
#include "util/text.hpp"

namespace dlock::sql {
namespace {

TEST(SqlStatements, ABeginningOfAKeyIsText) {
  const std::string key = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x92z";
  std::size_t longest = 0;
  for (int i = 0; i < 1'000; ++i) {
    const std::string_view some = random_beginning(key);
    EXPECT_TRUE(key.starts_with(some));
    EXPECT_TRUE(util::is_utf8(some)) << some.size();
    longest = std::max(longest, some.size());
  }
  EXPECT_EQ(longest, key.size());
  EXPECT_EQ(random_beginning(""), "");
}

}  // namespace
}  // namespace dlock::sql
