#include <gtest/gtest.h>

#include "backends/sql/answer.hpp"

namespace dlock::sql {
namespace {

TEST(SqlAnswer, WhatIsNoNumberIsZero) {
  const Row row{"7", "-7", "x", "", std::nullopt, "1000000000000000001", "1.5", " 1"};
  EXPECT_EQ(number(row, 0), 7U);
  EXPECT_EQ(signed_number(row, 0), 7);
  EXPECT_EQ(number(row, 1), 0U);
  EXPECT_EQ(signed_number(row, 1), -7);
  for (std::size_t column = 2; column <= row.size(); ++column) {
    EXPECT_EQ(number(row, column), 0U) << column;
    EXPECT_EQ(signed_number(row, column), 0) << column;
  }
}

TEST(SqlAnswer, ANumberInItStandsAlone) {
  EXPECT_EQ(number_in({.rows = {{"7"}}}), 7U);
  EXPECT_EQ(number_in({.rows = {{std::nullopt}}}), 0U);
  EXPECT_EQ(number_in({}), 0U);
  EXPECT_EQ(number_in({.rows = {{"7", "8"}}}), 0U);
  EXPECT_EQ(number_in({.rows = {{"7"}, {"8"}}}), 0U);
}

}  // namespace
}  // namespace dlock::sql
