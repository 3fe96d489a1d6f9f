#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "backends/mysql/state.hpp"
#include "core/lock_record.hpp"

namespace dlock::mysql {
namespace {

using Is = State::Decision::Kind;

Party party(std::uint64_t id, Kind kind, Mode mode, unsigned slots = 1) {
  Party party;
  party.id = id;
  party.kind = kind;
  party.owner = "owner " + std::to_string(id);
  party.mode = mode;
  party.slots = slots;
  party.left = Millis{1'000};
  party.present = true;
  return party;
}
Party holder(std::uint64_t id, Mode mode, unsigned slots = 1) {
  return party(id, Kind::holder, mode, slots);
}
Party waiter(std::uint64_t id, Mode mode, unsigned slots = 1) {
  return party(id, Kind::waiter, mode, slots);
}

struct Decided {
  Is kind;
  std::uint64_t party;  // its id; 0: none
  std::size_t ahead;
  bool operator==(const Decided&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Decided& decided) {
  return out << static_cast<int>(decided.kind) << " of " << decided.party << " with "
             << decided.ahead << " ahead";
}

Decided decide(std::vector<Party> parties, Mode mode, unsigned slots = 1, std::uint64_t own = 0) {
  const State state(std::move(parties));
  Request request;
  request.mode = mode;
  request.slots = slots;
  const auto decision = state.decide(request, own);
  return {decision.kind, decision.party != nullptr ? decision.party->id : 0, decision.ahead};
}

constexpr Mode kExclusive = Mode::exclusive;
constexpr Mode kShared = Mode::shared;
constexpr Mode kSlots = Mode::slots;

TEST(MysqlState, AFreeLockIsTaken) {
  EXPECT_EQ(decide({}, kExclusive), (Decided{Is::take, 0, 0}));
  EXPECT_EQ(decide({}, kShared), (Decided{Is::take, 0, 0}));
  EXPECT_EQ(decide({}, kSlots, 2), (Decided{Is::take, 0, 0}));
}

TEST(MysqlState, AHolderIsInTheWayOfAllButItsKind) {
  EXPECT_EQ(decide({holder(1, kExclusive)}, kExclusive), (Decided{Is::held, 1, 0}));
  EXPECT_EQ(decide({holder(1, kExclusive)}, kShared), (Decided{Is::held, 1, 0}));
  EXPECT_EQ(decide({holder(1, kShared)}, kExclusive), (Decided{Is::held, 1, 0}));
  EXPECT_EQ(decide({holder(1, kShared)}, kShared), (Decided{Is::take, 0, 0}));
}

TEST(MysqlState, ModesThatDoNotMixAreAConflict) {
  EXPECT_EQ(decide({holder(1, kSlots, 2)}, kExclusive).kind, Is::conflict);
  EXPECT_EQ(decide({holder(1, kShared)}, kSlots, 2).kind, Is::conflict);
  EXPECT_EQ(decide({holder(1, kSlots, 2)}, kSlots, 3).kind, Is::conflict);
}

TEST(MysqlState, ALaterOneWaitsForTheMiddleOneOfThoseThatMustGoFirst) {
  const std::vector<Party> queue{holder(1, kExclusive), waiter(2, kShared), waiter(3, kExclusive),
                                 waiter(4, kShared),    waiter(5, kShared), waiter(6, kShared)};
  EXPECT_EQ(decide(queue, kExclusive), (Decided{Is::behind, 4, 5}));
  EXPECT_EQ(decide(queue, kShared), (Decided{Is::behind, 2, 5}))
      << "other readers are not in its way";
  EXPECT_EQ(decide(queue, kShared, 1, 4), (Decided{Is::behind, 2, 2}));
  EXPECT_EQ(decide(queue, kExclusive, 1, 3), (Decided{Is::behind, 2, 1}));
  EXPECT_EQ(decide(queue, kShared, 1, 2), (Decided{Is::held, 1, 0}));
}

// Two hundred waiters that acquire the lock in the order of the queue.  A waiter looks when it
// joins the queue, and whenever the waiter that it waits for has acquired the lock.
struct Line {
  std::size_t depth = 0;  // of the longest chain of waits
  std::size_t looks = 0;  // of the waiter that looked most often
};
Line line_of(const std::function<Mode(std::uint64_t)>& mode_of) {
  std::vector<Party> parties{holder(1, kExclusive)};
  for (std::uint64_t id = 2; id <= 201; ++id) parties.push_back(waiter(id, mode_of(id)));
  std::map<std::uint64_t, std::uint64_t> waits_for;
  std::map<std::uint64_t, std::size_t> looks;
  Line out;
  for (;;) {
    const std::uint64_t newest_holder = parties.front().id;
    for (const Party& party : parties) {
      if (party.kind == Kind::holder) continue;
      if (waits_for.contains(party.id) && waits_for[party.id] != newest_holder) continue;
      waits_for[party.id] = decide(parties, party.mode, 1, party.id).party;
      out.looks = std::max(out.looks, ++looks[party.id]);
    }
    for (const Party& party : parties) {
      std::size_t depth = 0;
      for (auto at = party.id; waits_for.contains(at); at = waits_for[at]) ++depth;
      out.depth = std::max(out.depth, depth);
    }
    parties.erase(parties.begin());
    if (parties.empty()) return out;
    parties.front().kind = Kind::holder;
    waits_for.erase(parties.front().id);
  }
}

// MySQL refuses a GET_LOCK that would be at the end of a chain of more than 31 waits
// (MAX_SEARCH_DEPTH in sql/mdl.cc).
TEST(MysqlState, ALongQueueIsNoLongChainOfWaits) {
  for (const bool readers : {false, true}) {
    const Line line =
        line_of([&](std::uint64_t id) { return readers && id % 2 == 0 ? kShared : kExclusive; });
    EXPECT_LE(line.depth, 9U);
    EXPECT_LE(line.looks, 10U);
  }
}

TEST(MysqlState, OfSeveralHoldersOneThatIsThereIsWaitedFor) {
  Party gone = holder(1, kShared);
  gone.present = false;
  EXPECT_EQ(decide({gone, holder(2, kShared)}, kExclusive), (Decided{Is::held, 2, 0}));
  EXPECT_EQ(decide({gone}, kExclusive), (Decided{Is::room, 1, 0}));
}

TEST(MysqlState, TheFirstReaderLooksForAHolderThatIsNotThereAndWakesTheOthers) {
  Party gone = holder(1, kExclusive);
  gone.present = false;
  const std::vector<Party> queue{gone, waiter(2, kShared), waiter(3, kShared), waiter(4, kShared)};
  EXPECT_EQ(decide(queue, kShared, 1, 2), (Decided{Is::room, 1, 0}));
  EXPECT_EQ(decide(queue, kShared, 1, 3), (Decided{Is::behind, 2, 1}));
  EXPECT_EQ(decide(queue, kShared, 1, 4), (Decided{Is::behind, 2, 2}));
}

TEST(MysqlState, ReadersGoInTogetherBehindNoWriter) {
  const std::vector<Party> queue{holder(1, kShared), waiter(2, kShared)};
  EXPECT_EQ(decide(queue, kShared), (Decided{Is::take, 0, 1}));
}

TEST(MysqlState, SlotsAreKeptForThoseWhoCameFirst) {
  EXPECT_EQ(decide({holder(1, kSlots, 2)}, kSlots, 2), (Decided{Is::take, 0, 0}));
  EXPECT_EQ(decide({holder(1, kSlots, 2), waiter(2, kSlots, 2)}, kSlots, 2),
            (Decided{Is::behind, 2, 1}));
  EXPECT_EQ(decide({holder(1, kSlots, 3), waiter(2, kSlots, 3)}, kSlots, 3),
            (Decided{Is::take, 0, 1}));
}

TEST(MysqlState, TheFirstThatWaitsForASlotWaitsForTheOldestHolderThatIsThere) {
  auto gone = holder(1, kSlots, 3);
  gone.present = false;
  gone.age = Millis{30};
  auto old = holder(2, kSlots, 3);
  old.age = Millis{20};
  EXPECT_EQ(decide({gone, old, holder(3, kSlots, 3), waiter(4, kSlots, 3)}, kSlots, 3, 4),
            (Decided{Is::room, 2, 0}));
}

TEST(MysqlState, WhatHasExpiredHoldsNothingOnceItsConnectionIsGone) {
  auto late = holder(1, kExclusive);
  late.left = Millis{-5};
  EXPECT_EQ(decide({late}, kExclusive), (Decided{Is::held, 1, 0}));
  EXPECT_EQ(State({late}).info("job").holders.at(0).expires, Millis{0});
  late.present = false;
  EXPECT_EQ(decide({late}, kExclusive), (Decided{Is::take, 0, 0}));
}

TEST(MysqlState, AWaiterWithoutAConnectionIsNotWaitedFor) {
  auto gone = waiter(2, kExclusive);
  gone.present = false;
  const State state({holder(1, kExclusive), gone});
  EXPECT_TRUE(state.waiters().empty());
  ASSERT_EQ(state.departed().size(), 1U);
  EXPECT_EQ(decide({holder(1, kExclusive), gone}, kExclusive), (Decided{Is::held, 1, 0}));
}

TEST(MysqlState, ABrokenGrantHoldsNothing) {
  EXPECT_EQ(decide({party(1, Kind::broken, kExclusive)}, kExclusive), (Decided{Is::take, 0, 0}));
}

TEST(MysqlState, OnlySlotsHaveNumbers) {
  const auto number = [](Mode mode, unsigned slot) {
    Party party = holder(1, mode, mode == kSlots ? 3 : 1);
    party.slot = slot;
    return State({party}).info("job").holders.at(0).slot;
  };
  EXPECT_EQ(number(kSlots, 2), 2U);
  EXPECT_EQ(number(kSlots, 0), std::nullopt) << "of an earlier dlock";
  EXPECT_EQ(number(kExclusive, 1), std::nullopt);
}

TEST(MysqlState, RowsAreReadWithCare) {
  const Row good{"7",
                 "0",
                 "job",
                 "id",
                 "1",
                 "1",
                 "42",
                 "1500",
                 "999",
                 "12",
                 "3",
                 "{}",
                 "2026-11-27 00:00:05.000000"};
  const auto read = parse_party(good);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->id, 7U);
  EXPECT_EQ(read->kind, Kind::holder);
  EXPECT_EQ(read->mode, Mode::shared);
  EXPECT_EQ(read->fence, 42U);
  EXPECT_EQ(read->age, Millis{1});
  EXPECT_EQ(read->left, Millis{1}) << "rounded up: it has not expired yet";
  EXPECT_TRUE(read->present);
  EXPECT_EQ(read->slot, 3U);
  EXPECT_EQ(read->expires_at, "2026-11-27 00:00:05.000000");

  Row bad = good;
  bad[4] = "9";
  EXPECT_EQ(parse_party(bad)->mode, Mode::exclusive) << "keeps all others out";
  bad = good;
  bad.pop_back();
  EXPECT_FALSE(parse_party(bad));
  bad = good;
  bad[8] = std::nullopt;
  bad[9] = std::nullopt;
  EXPECT_FALSE(parse_party(bad)->left);
  EXPECT_FALSE(parse_party(bad)->present);
  bad[7] = "-99999999999999999999999999";
  EXPECT_EQ(parse_party(bad)->age, Millis{0});
}

TEST(MysqlState, WhatIsShownComesFromTheRecordButNeverTheId) {
  auto held = holder(1, kExclusive);
  held.fence = 5;
  held.record = R"({"id":"forged","host":"web-3","pid":7,"user":"app","command":"x","dlock":"1"})";
  auto silent = waiter(2, kShared);
  silent.record = "no JSON";
  const LockInfo info = State({held, silent}).info("job");
  EXPECT_EQ(info.key, "job");
  ASSERT_EQ(info.holders.size(), 1U);
  EXPECT_EQ(info.holders[0].owner.id, "owner 1");
  EXPECT_EQ(info.holders[0].owner.host, "web-3");
  EXPECT_EQ(info.holders[0].fence, 5U);
  ASSERT_EQ(info.waiters->size(), 1U);
  EXPECT_EQ(info.waiters->at(0).mode, kShared);
}

}  // namespace
}  // namespace dlock::mysql
