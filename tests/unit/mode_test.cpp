#include "core/mode.hpp"

#include <gtest/gtest.h>

namespace dlock {
namespace {

bool mix(Claim a, Claim b) {
  EXPECT_EQ(modes_mix(a, b), modes_mix(b, a));
  return modes_mix(a, b);
}

TEST(Modes, ExclusiveAndSharedMayWaitForEachOther) {
  for (const Mode a : {Mode::exclusive, Mode::shared}) {
    for (const Mode b : {Mode::exclusive, Mode::shared}) {
      EXPECT_TRUE(mix({a, 1}, {b, 1})) << mode_name(a) << ' ' << mode_name(b);
      EXPECT_TRUE(mix({a, 1}, {b, 2})) << "the number means nothing";
    }
  }
}

TEST(Modes, SlotsGoWithSlotsOfTheSameNumberOnly) {
  EXPECT_TRUE(mix({Mode::slots, 2}, {Mode::slots, 2}));
  EXPECT_FALSE(mix({Mode::slots, 2}, {Mode::slots, 3}));
  EXPECT_FALSE(mix({Mode::slots, 1}, {Mode::exclusive, 1}));
  EXPECT_FALSE(mix({Mode::slots, 1}, {Mode::shared, 1}));
}

TEST(Modes, AConflictNamesBothSides) {
  const Claim asked{Mode::slots, 3};
  EXPECT_EQ(mode_conflict("job", asked, {Mode::shared}).code, Errc::conflict);
  EXPECT_EQ(
      mode_conflict("job", asked, {Mode::shared}).message,
      "\"job\" is in use with --shared, and you asked for --slots 3; use --shared, or another key");
  EXPECT_EQ(mode_conflict("job", asked, {Mode::slots, 2}).message,
            "\"job\" is in use with --slots 2, and you asked for --slots 3; use --slots 2, or "
            "another key");
}

}  // namespace
}  // namespace dlock
