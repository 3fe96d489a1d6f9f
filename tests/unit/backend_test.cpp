#include "core/backend.hpp"

#include <gtest/gtest.h>

#include <tuple>

namespace dlock {
namespace {

using Asked = std::tuple<Mode, unsigned>;

bool mix(const Asked& a, const Asked& b) {
  const auto [a_mode, a_slots] = a;
  const auto [b_mode, b_slots] = b;
  EXPECT_EQ(modes_mix(a_mode, a_slots, b_mode, b_slots),
            modes_mix(b_mode, b_slots, a_mode, a_slots));
  return modes_mix(a_mode, a_slots, b_mode, b_slots);
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
  const Request request{.key = "job", .mode = Mode::slots, .slots = 3};
  EXPECT_EQ(mode_conflict(request, Mode::shared, 1).code, Errc::conflict);
  EXPECT_EQ(
      mode_conflict(request, Mode::shared, 1).message,
      "\"job\" is in use with --shared, and you asked for --slots 3; use --shared, or another key");
  EXPECT_EQ(mode_conflict(request, Mode::slots, 2).message,
            "\"job\" is in use with --slots 2, and you asked for --slots 3; use --slots 2, or "
            "another key");
}

}  // namespace
}  // namespace dlock
