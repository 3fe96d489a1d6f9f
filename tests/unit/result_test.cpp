#include "core/result.hpp"

#include <gtest/gtest.h>

namespace dlock {
namespace {

// To return what is const binds to a constructor for values rather than to the one that copies.
template <class T>
Result<T> passed_on(const Result<T> outcome) {
  return outcome;
}

TEST(Result, IsPassedOnAsItIs) {
  const auto refused = passed_on(Result<bool>(Error{Errc::busy, "busy"}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::busy);
  EXPECT_FALSE(passed_on(Result<bool>(false)).value());
  EXPECT_EQ(passed_on(Result<int>(7)).value(), 7);
}

}  // namespace
}  // namespace dlock
