#include <gtest/gtest.h>

#include "backends/redis/slots.hpp"

namespace dlock::redis {
namespace {

using Taken = std::optional<std::string>;

TEST(RedisSlots, TheLowestNumberThatAMajorityHasFree) {
  EXPECT_EQ(lowest_free_number(3, 2, {Taken(), Taken(), Taken()}), 0u);
  EXPECT_EQ(lowest_free_number(3, 2, {Taken(""), Taken(""), Taken()}), 1u);
  EXPECT_EQ(lowest_free_number(3, 2, {Taken("100"), Taken("000"), Taken()}), 2u);
  EXPECT_EQ(lowest_free_number(3, 2, {Taken("100"), Taken("000"), Taken("010")}), 1u);
  EXPECT_EQ(lowest_free_number(3, 3, {Taken("100"), Taken("000"), Taken("010")}), 3u);
}

TEST(RedisSlots, NoneIsLeft) {
  EXPECT_EQ(lowest_free_number(2, 2, {Taken("11"), Taken("")}), 0u);
  EXPECT_EQ(lowest_free_number(2, 2, {Taken("10"), Taken("01")}), 0u);
  EXPECT_EQ(lowest_free_number(0, 1, {Taken("")}), 0u);
}

TEST(RedisSlots, OddAnswersDoNoHarm) {
  EXPECT_EQ(lowest_free_number(2, 2, {Taken("x1"), Taken("")}), 1u);
  EXPECT_EQ(lowest_free_number(2, 1, {Taken(std::string(5'000, '1'))}), 0u);
}

}  // namespace
}  // namespace dlock::redis
