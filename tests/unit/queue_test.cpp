#include "core/queue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace dlock {
namespace {

using Kind = Turn::Kind;

// "xrr": a writer and two readers; a digit: a request for that many slots.
std::vector<Queued> queue(std::string_view text) {
  std::vector<Queued> out;
  for (const char c : text) {
    Claim claim{Mode::exclusive};
    if (c == 'r') claim = {Mode::shared};
    if (c >= '1' && c <= '9') claim = {Mode::slots, static_cast<unsigned>(c - '0')};
    out.push_back({claim});
  }
  return out;
}

Kind kind(std::string_view text, std::size_t own) { return turn_of(queue(text), own).kind; }

std::size_t waits_for(std::string_view text, std::size_t own) {
  const Turn turn = turn_of(queue(text), own);
  EXPECT_EQ(turn.kind, Kind::wait_for_one);
  return turn.index;
}

TEST(Queue, AWriterIsGrantedTheLockFirstAndWaitsForTheOneBeforeIt) {
  EXPECT_EQ(kind("xxrx", 0), Kind::granted);
  EXPECT_EQ(waits_for("xxrx", 1), 0U);
  EXPECT_EQ(waits_for("xxrx", 3), 2U);
  EXPECT_EQ(waits_for("rx", 1), 0U);
}

TEST(Queue, AReaderWaitsForTheNearestWriter) {
  EXPECT_EQ(kind("rrxrxrr", 0), Kind::granted);
  EXPECT_EQ(kind("rrxrxrr", 1), Kind::granted);
  EXPECT_EQ(waits_for("rrxrxrr", 2), 1U);
  EXPECT_EQ(waits_for("rrxrxrr", 3), 2U);
  EXPECT_EQ(waits_for("rrxrxrr", 4), 3U);
  EXPECT_EQ(waits_for("rrxrxrr", 5), 4U);
  EXPECT_EQ(waits_for("rrxrxrr", 6), 4U);
}

TEST(Queue, TheFirstWaiterForASlotWaitsForAnyHolderAndTheOthersForOneAnother) {
  EXPECT_EQ(kind("22222", 0), Kind::granted);
  EXPECT_EQ(kind("22222", 1), Kind::granted);
  EXPECT_EQ(kind("22222", 2), Kind::wait_for_any);
  EXPECT_EQ(waits_for("22222", 3), 2U);
  EXPECT_EQ(waits_for("22222", 4), 3U);
}

TEST(Queue, SlotsMixWithNothingElse) {
  EXPECT_EQ(kind("x2", 1), Kind::refused);
  EXPECT_EQ(kind("r2", 1), Kind::refused);
  EXPECT_EQ(kind("2x", 1), Kind::refused);
  EXPECT_EQ(kind("2r", 1), Kind::refused);
  EXPECT_EQ(kind("23", 1), Kind::refused);
}

// A client in another mode that has not yet seen its refusal.
TEST(Queue, ARefusedRequestHoldsUpTheQueueUntilItHasGone) {
  EXPECT_EQ(count_holders(queue("3x33")), 1U);
  EXPECT_EQ(waits_for("3x33", 2), 1U);
  EXPECT_EQ(waits_for("3x33", 3), 2U);
}

TEST(Queue, AWaiterLooksAgainWhenWhatItWaitsForExpires) {
  const Deadline soon = Deadline{} + Millis{100};
  const Deadline later = soon + Millis{100};
  std::array<Queued, 3> writers{{{{}, soon}, {{}, later}, {}}};
  EXPECT_EQ(turn_of(writers, 1).look, soon);
  EXPECT_EQ(turn_of(writers, 2).look, later);
  std::array<Queued, 3> slots{
      {{{Mode::slots, 2}, later}, {{Mode::slots, 2}, soon}, {{Mode::slots, 2}}}};
  EXPECT_EQ(turn_of(slots, 2).look, soon) << "any of the holders";
  EXPECT_EQ(turn_of(queue("xx"), 1).look, kNever);
}

TEST(Queue, TheLowestFreeSlotIsTaken) {
  const auto free = [](std::vector<unsigned> taken, unsigned slots, std::size_t leave = 0) {
    return free_slot(taken, slots, leave);
  };
  EXPECT_EQ(free({}, 3), 1U);
  EXPECT_EQ(free({1}, 3), 2U);
  EXPECT_EQ(free({3, 1}, 3), 2U);
  EXPECT_EQ(free({2, 3, 1}, 3), 0U);
  EXPECT_EQ(free({7, 1, 1, 0}, 2), 2U) << "numbers that are not slots do not count";
  EXPECT_EQ(free({}, 0), 0U);
  EXPECT_EQ(free({2}, 5, 1), 3U);
  EXPECT_EQ(free({2}, 5, 9), 5U) << "the last free one is not left to others";
}

}  // namespace
}  // namespace dlock
