#include "core/numbers.hpp"

#include <gtest/gtest.h>

#include "support/fake_records.hpp"

namespace dlock {
namespace {

constexpr std::int64_t kNow = kIdEpochMs + 1'000'000;

TEST(Numbers, TheIdsBeginIn2025AndEndIn2094) {
  // date -ud 2025-01-01 +%s; date -ud @$((1735689600 + (1 << 41) / 1000))
  EXPECT_EQ(kIdEpochMs, 1'735'689'600'000);
  EXPECT_EQ(kLastIdMs, 2'199'023'255'551);
}

TEST(Numbers, AnIdIsTimeWorkerAndCounter) {
  const IdWindow window{.worker = 1'023, .start = 5, .end = 7};
  EXPECT_EQ(snowflake_id(window, 0), 5u << 22 | 1'023u << 12);
  EXPECT_EQ(snowflake_id(window, 4'095), 5u << 22 | 1'023u << 12 | 4'095u);
  EXPECT_EQ(snowflake_id(window, 4'096), 6u << 22 | 1'023u << 12);
  const IdWindow last{.worker = 1'023, .start = kLastIdMs, .end = kLastIdMs + 1};
  EXPECT_EQ(snowflake_id(last, 4'095), static_cast<std::uint64_t>(INT64_MAX));
}

TEST(Numbers, AWindowHasRoomForItsIds) {
  EXPECT_EQ(window_length(1), Millis{1});
  EXPECT_EQ(window_length(4'096), Millis{1});
  EXPECT_EQ(window_length(4'097), Millis{2});
  EXPECT_EQ(window_length(1'000'000), Millis{245});
}

TEST(Numbers, AWorkerWhoseWindowIsOverComesBeforeANewOne) {
  WorkerEnds ends;
  for (int i = 0; i < 2'000; ++i) {
    const auto window = take_window(ends, kNow + i, Millis{1}, "x");
    ASSERT_TRUE(window);
    EXPECT_EQ(window.value().worker, 0u);
    EXPECT_EQ(window.value().start, 1'000'000 + i);
  }
  EXPECT_EQ(ends.size(), 1u);
}

TEST(Numbers, WithoutOneANewWorkerAndThenTheOneThatEndsFirst) {
  WorkerEnds ends;
  for (unsigned i = 0; i < kWorkers; ++i) {
    const auto window = take_window(ends, kNow, Millis{i == 77 ? 1 : 10}, "x");
    ASSERT_TRUE(window);
    EXPECT_EQ(window.value().worker, i);
    EXPECT_EQ(window.value().start, 1'000'000);
  }
  const auto next = take_window(ends, kNow, Millis{1}, "x");
  ASSERT_TRUE(next);
  EXPECT_EQ(next.value().worker, 77u);
  EXPECT_EQ(next.value().start, 1'000'001);
  EXPECT_EQ(next.value().end, 1'000'002);
  EXPECT_EQ(ends[77], 1'000'002);
}

TEST(Numbers, AWindowStartsAtMostFiveSecondsAhead) {
  WorkerEnds ends(kWorkers, 1'005'000);
  EXPECT_TRUE(take_window(ends, kNow, Millis{1}, "x"));
  ends = WorkerEnds(kWorkers, 1'005'001);
  const WorkerEnds before = ends;
  const auto late = take_window(ends, kNow, Millis{1}, "x");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::busy);
  EXPECT_EQ(ends, before);
}

TEST(Numbers, AClockOutsideOfTheTimeOfIdsIsRefused) {
  WorkerEnds ends;
  const auto early = take_window(ends, kIdEpochMs - 5'001, Millis{1}, "x");
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Errc::busy);
  const auto late = take_window(ends, kIdEpochMs + kLastIdMs, Millis{1}, "x");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::invalid);
  EXPECT_TRUE(ends.empty());
  EXPECT_TRUE(take_window(ends, kIdEpochMs + kLastIdMs - 1, Millis{1}, "x"));
}

TEST(Numbers, WorkersComeBackAsTheyWereStored) {
  EXPECT_EQ(parse_worker_ends(""), WorkerEnds());
  EXPECT_EQ(parse_worker_ends("5"), WorkerEnds{5});
  const WorkerEnds all(kWorkers, kLastIdMs);
  EXPECT_EQ(parse_worker_ends(format_worker_ends(all)), all);
  for (const char* bad : {"x", "1,2", "-1", "1  2", " 1", "9999999999999", "1 x"}) {
    EXPECT_EQ(parse_worker_ends(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(parse_worker_ends(format_worker_ends(all) + " 1"), std::nullopt);
}

TEST(Numbers, ACounterBeginsWithOne) {
  test::FakeRecords records;
  EXPECT_EQ(take_numbers(records, "x", 3, kNever).value(), 1u);
  EXPECT_EQ(take_numbers(records, "x", 1, kNever).value(), 4u);
  EXPECT_EQ(take_numbers(records, "y", 1, kNever).value(), 1u);
}

TEST(Numbers, ACounterEndsWhereSignedNumbersDo) {
  test::FakeRecords records;
  EXPECT_EQ(take_numbers(records, "all", kLastNumber, kNever).value(), 1u);
  EXPECT_EQ(take_numbers(records, "all", 1, kNever).error().code, Errc::invalid);
  EXPECT_EQ(take_numbers(records, "x", kLastNumber - 3, kNever).value(), 1u);
  EXPECT_EQ(take_numbers(records, "x", 4, kNever).error().code, Errc::invalid);
  EXPECT_EQ(take_numbers(records, "x", 3, kNever).value(), kLastNumber - 2);
}

TEST(Numbers, WhatIsNoCounterIsLeftAlone) {
  for (const char* text : {"", "-1", "x", "1.5", "9223372036854775808"}) {
    test::FakeRecords records;
    records.put({RecordKind::number, "x", ""}, text);
    records.put({RecordKind::number, "", ""}, "x");
    EXPECT_EQ(take_numbers(records, "x", 1, kNever).error().code, Errc::conflict) << text;
    EXPECT_EQ(lease_window(records, "x", Millis{1}, kNever).error().code, Errc::conflict);
  }
}

}  // namespace
}  // namespace dlock
