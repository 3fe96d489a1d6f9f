// What several servers say of a lock, as one.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/redis/merge.hpp"
#include "backends/redis/quorum.hpp"

namespace dlock::redis {
namespace {

using Look = Result<LockInfo>;
using Lines = std::vector<std::string>;

LockInfo::Holder holder(const std::string& id, int expires = 20'000) {
  LockInfo::Holder out;
  out.owner = {.id = id, .host = "web-" + id, .pid = 7};
  out.expires = Millis{expires};
  return out;
}

LockInfo::Holder stranger(const std::string& id, const std::string& kind) {
  LockInfo::Holder out;
  out.owner.id = id;
  out.expires = Millis{10'000};
  out.foreign = kind;
  return out;
}

LockInfo::Waiter waiter(const std::string& id, int waiting) {
  LockInfo::Waiter out;
  out.owner.id = id;
  out.waiting = Millis{waiting};
  return out;
}

LockInfo held(std::vector<LockInfo::Holder> holders, Mode mode = Mode::exclusive,
              unsigned slots = 1) {
  LockInfo out{.key = "job", .mode = mode, .slots = slots};
  out.holders = std::move(holders);
  out.waiters.emplace();
  return out;
}

LockInfo waited(std::vector<LockInfo::Waiter> waiters) {
  LockInfo out = held({});
  out.waiters = std::move(waiters);
  return out;
}

LockInfo idle() { return held({}); }

Error down(char server) {
  return {Errc::unreachable, std::string("redis ") + server + ":6379: connection refused"};
}
Error denied(char server) {
  return {Errc::denied, std::string("redis ") + server + ":6379: wrong password"};
}

Lines names(std::size_t count) {
  Lines out;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(std::string("redis ") + static_cast<char>('a' + i) + ":6379");
  }
  return out;
}

Look merge(const std::vector<Look>& looks) {
  return merge_looks("job", looks, names(looks.size()));
}

// Of what must succeed.
LockInfo merged(const std::vector<Look>& looks) {
  auto out = merge(looks);
  EXPECT_TRUE(out) << (out ? "" : out.error().message);
  return out ? out.value() : LockInfo();
}

Lines ids(const LockInfo& lock) {
  Lines out;
  for (const auto& it : lock.holders) out.push_back(it.owner.id);
  return out;
}

TEST(RedisMerge, WhatAllSayIsSo) {
  const LockInfo lock = merged({held({holder("1")}), held({holder("1")}), held({holder("1")})});
  EXPECT_EQ(lock.key, "job");
  EXPECT_EQ(ids(lock), Lines{"1"});
  EXPECT_EQ(lock.nodes_total, 3U);
  EXPECT_EQ(lock.nodes_agreeing, 3U);
  EXPECT_EQ(lock.remarks, Lines{});
  const LockInfo free = merged({idle(), idle(), idle()});
  EXPECT_TRUE(free.holders.empty());
  EXPECT_EQ(free.nodes_agreeing, 3U);
  EXPECT_EQ(free.remarks, Lines{});
}

TEST(RedisMerge, TooFewAnswersAreAnErrorThatNamesEachServerAndItsReason) {
  const auto lock = merge({idle(), down('b'), held({holder("1")}), denied('d'), down('e')});
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, Errc::unreachable);
  EXPECT_EQ(lock.error().message,
            "2 of 5 servers answered, 3 are needed: redis b:6379: connection refused; "
            "redis d:6379: wrong password; redis e:6379: connection refused");
  EXPECT_EQ(merge({denied('a'), down('b'), denied('c')}).error().code, Errc::denied);
  EXPECT_EQ(merge({denied('a'), down('b'), idle()}).error().code, Errc::unreachable);
  EXPECT_EQ(merge({denied('a'), denied('b'), denied('c'), idle(), idle()}).error().code,
            Errc::denied);
  EXPECT_FALSE(merge({idle(), idle(), down('c'), down('d')}));  // 2 of 4 are no majority
  EXPECT_TRUE(merge({idle(), idle(), down('c')}));
}

TEST(RedisMerge, OfOneServerTheErrorIsItsOwn) {
  EXPECT_EQ(merge({denied('a')}).error().message, denied('a').message);
  EXPECT_EQ(merge({denied('a')}).error().code, Errc::denied);
  const LockInfo lock = merged({held({holder("1")})});
  EXPECT_EQ(ids(lock), Lines{"1"});
  EXPECT_EQ(lock.nodes_total, 1U);
  EXPECT_FALSE(merge({}));
}

TEST(RedisMerge, ServersThatAreDownOrDenyAreRemarked) {
  const LockInfo lock =
      merged({held({holder("1")}), down('b'), held({holder("1")}), denied('d'), idle()});
  EXPECT_EQ(ids(lock), Lines{"1"});
  EXPECT_EQ(lock.nodes_agreeing, 2U);
  EXPECT_EQ(lock.remarks, (Lines{"redis b:6379: connection refused", "redis d:6379: wrong password",
                                 "redis e:6379: free there"}));
}

TEST(RedisMerge, WhatIsLeftOfATryThatFailedIsNoHolder) {
  const LockInfo lock = merged({held({holder("1")}), held({holder("1")}), idle(), idle(), idle()});
  EXPECT_TRUE(lock.holders.empty());
  EXPECT_EQ(lock.mode, Mode::exclusive);
  EXPECT_EQ(lock.nodes_agreeing, 3U);
  EXPECT_EQ(lock.remarks, (Lines{"redis a:6379: held by web-1 pid 7 there",
                                 "redis b:6379: held by web-1 pid 7 there"}));
}

TEST(RedisMerge, AHolderIsToldFromWhatAnotherLeft) {
  const LockInfo lock = merged({held({holder("2")}), held({holder("1")}), held({holder("1")}),
                                held({holder("1")}), held({holder("3")})});
  EXPECT_EQ(ids(lock), Lines{"1"});
  EXPECT_EQ(lock.nodes_agreeing, 3U);
  EXPECT_EQ(lock.remarks, (Lines{"redis a:6379: held by web-2 pid 7 there",
                                 "redis e:6379: held by web-3 pid 7 there"}));
}

TEST(RedisMerge, ASplitVoteHasNoHolder) {
  const LockInfo lock = merged({held({holder("1")}), held({holder("2")}), held({holder("3")})});
  EXPECT_TRUE(lock.holders.empty());
  EXPECT_EQ(lock.nodes_agreeing, 0U);
  EXPECT_EQ(lock.remarks.size(), 3U);
}

TEST(RedisMerge, WhoMayHaveAMajorityWithTheSilentServersIsAHolder) {
  EXPECT_EQ(ids(merged({held({holder("1")}), idle(), down('c')})), Lines{"1"});
  EXPECT_EQ(ids(merged({held({holder("1")}), idle(), idle()})), Lines{});
  EXPECT_EQ(ids(merged({held({holder("1")}), idle(), idle(), down('d'), down('e')})), Lines{"1"});
  EXPECT_EQ(ids(merged({held({holder("1")}), idle(), idle(), idle(), down('e')})), Lines{});
}

TEST(RedisMerge, WithSilentServersThereAreNoMoreHoldersThanThereCanBe) {
  EXPECT_EQ(ids(merged({held({holder("1")}), held({holder("2")}), held({holder("2")}), down('d'),
                        down('e')})),
            Lines{"2"});
  // The same number of servers: the one that came later.
  std::vector<Look> looks{held({holder("1")}), held({holder("2")}), down('c')};
  looks[0].value().holders[0].fence = 4;
  looks[1].value().holders[0].fence = 5;
  const LockInfo lock = merged(looks);
  EXPECT_EQ(ids(lock), Lines{"2"});
  EXPECT_EQ(lock.remarks,
            (Lines{"redis a:6379: held by web-1 pid 7 there", "redis c:6379: connection refused"}));
  // Of slots and an exclusive lock only one can be.
  EXPECT_EQ(ids(merged({held({holder("1")}), held({holder("2")}, Mode::shared),
                        held({holder("2")}, Mode::shared), down('d'), down('e')})),
            Lines{"2"});
  const auto two = [](const std::string& a, const std::string& b) {
    return held({holder(a), holder(b)}, Mode::slots, 2);
  };
  EXPECT_EQ(ids(merged({two("1", "2"), two("2", "3"), two("3", "1"), two("2", "3"), down('e')})),
            (Lines{"2", "3"}));
}

// Every way in which each of n servers is down, free, or held by one of two.
TEST(RedisMerge, InEveryMixTheRulesHold) {
  for (const unsigned n : {1U, 3U, 5U}) {
    unsigned mixes = 1;
    for (unsigned i = 0; i < n; ++i) mixes *= 5;
    for (unsigned mix = 0; mix < mixes; ++mix) {
      std::vector<Look> looks;
      std::array<unsigned, 5> count{};
      unsigned rest = mix;
      for (unsigned i = 0; i < n; ++i, rest /= 5) {
        const unsigned kind = rest % 5;
        ++count.at(kind);
        switch (kind) {
          case 0:
            looks.emplace_back(idle());
            break;
          case 1:
            looks.emplace_back(held({holder("1")}));
            break;
          case 2:
            looks.emplace_back(held({holder("2")}));
            break;
          case 3:
            looks.emplace_back(down('x'));
            break;
          default:
            looks.emplace_back(denied('x'));
        }
      }
      const unsigned needed = n / 2 + 1;
      const unsigned silent = count[3] + count[4];
      const auto lock = merge(looks);
      ASSERT_EQ(lock.has_value(), n - silent >= needed) << n << ' ' << mix;
      if (!lock) {
        const bool is_denied = n - count[4] < needed;  // the others could not help
        ASSERT_EQ(lock.error().code, is_denied ? Errc::denied : Errc::unreachable) << mix;
        continue;
      }
      const LockInfo& info = lock.value();
      const unsigned most = std::max(count[1], count[2]);
      const bool may_be_held = most > 0 && most + silent >= needed;
      ASSERT_EQ(info.holders.size(), may_be_held ? 1U : 0U) << n << ' ' << mix;
      const unsigned agreeing = may_be_held ? most : count[0];
      ASSERT_EQ(info.nodes_agreeing, agreeing) << n << ' ' << mix;
      ASSERT_EQ(info.remarks.size(), n - agreeing) << n << ' ' << mix;
    }
  }
}

TEST(RedisMerge, SlotsNeedAMajorityForEachHolder) {
  const auto of = [](std::vector<LockInfo::Holder> holders) {
    return held(std::move(holders), Mode::slots, 2);
  };
  const LockInfo lock =
      merged({of({holder("1"), holder("2")}), of({holder("1"), holder("2")}),
              of({holder("1"), holder("2")}), of({holder("1"), holder("3")}), of({holder("3")})});
  EXPECT_EQ(lock.mode, Mode::slots);
  EXPECT_EQ(lock.slots, 2U);
  EXPECT_EQ(ids(lock), (Lines{"1", "2"}));
  EXPECT_EQ(lock.nodes_agreeing, 3U);
  EXPECT_EQ(lock.remarks, (Lines{"redis d:6379: also held by web-3 pid 7 there",
                                 "redis e:6379: held by web-3 pid 7 there"}));
}

// There can be three members on a majority each; one of them has no number, and so no token.
TEST(RedisMerge, NoMoreHoldSlotsThanThereAre) {
  const auto with = [](const std::string& id, std::optional<unsigned> slot) {
    LockInfo::Holder out = holder(id);
    out.slot = slot;
    if (slot) out.fence = *slot;
    return out;
  };
  const LockInfo lock = merged({held({with("1", 1), with("3", {})}, Mode::slots, 2),
                                held({with("1", 1), with("2", {})}, Mode::slots, 2),
                                held({with("2", 2), with("3", {})}, Mode::slots, 2)});
  EXPECT_EQ(ids(lock), (Lines{"1", "2"}));
  EXPECT_EQ(lock.holders.at(0).slot, 1U);
  EXPECT_EQ(lock.holders.at(1).slot, 2U);
}

TEST(RedisMerge, SharedNeedsAMajorityForEachHolder) {
  const auto of = [](std::vector<LockInfo::Holder> holders) {
    return held(std::move(holders), Mode::shared);
  };
  const LockInfo lock = merged({of({holder("1"), holder("2"), holder("3")}),
                                of({holder("3"), holder("2"), holder("1")}), of({holder("3")})});
  EXPECT_EQ(lock.mode, Mode::shared);
  EXPECT_EQ(ids(lock), (Lines{"1", "2", "3"}));
  EXPECT_EQ(lock.nodes_agreeing, 2U);
  EXPECT_EQ(lock.remarks, Lines{"redis c:6379: not held by web-1 pid 7 and 1 more there"});
}

TEST(RedisMerge, TheModeIsThatOfTheHolders) {
  EXPECT_EQ(merged({held({holder("9")}), held({holder("1")}, Mode::slots, 1),
                    held({holder("1")}, Mode::slots, 1)})
                .mode,
            Mode::slots);
  EXPECT_EQ(merged({held({holder("9")}, Mode::shared), idle(), idle()}).mode, Mode::exclusive);
}

TEST(RedisMerge, StrangersCountAsOthersDo) {
  const auto by_py = [] { return held({stranger("0123456789abcdef", "redis-py")}); };
  const LockInfo lock = merged({by_py(), by_py(), idle()});
  EXPECT_EQ(ids(lock), Lines{"0123456789abcdef"});
  EXPECT_EQ(lock.holders[0].foreign, "redis-py");
  const LockInfo free = merged({by_py(), held({stranger("1\x1b", "unknown")}), idle()});
  EXPECT_TRUE(free.holders.empty());
  EXPECT_EQ(free.remarks, (Lines{"redis a:6379: held by redis-py id 0123456789ab there",
                                 "redis b:6379: held by another program id 1\\x1b there"}));
  const auto nameless = [] { return held({stranger("", "unknown")}); };
  EXPECT_EQ(merged({nameless(), nameless(), idle()}).holders.size(), 1U);
  EXPECT_EQ(merged({nameless(), idle(), idle()}).remarks,
            Lines{"redis a:6379: held by another program there"});
}

TEST(RedisMerge, AHolderWithoutARecordIsKnownByTheOthers) {
  auto bare = stranger("1", "unknown");
  bare.expires = Millis{99'000};
  const LockInfo lock = merged({held({bare}), held({holder("1")}), held({bare})});
  ASSERT_EQ(ids(lock), Lines{"1"});
  EXPECT_FALSE(lock.holders[0].foreign);
  EXPECT_EQ(lock.holders[0].owner.host, "web-1");
  EXPECT_EQ(lock.nodes_agreeing, 3U);
}

TEST(RedisMerge, AnIdThatAServerNamesTwiceIsOneVote) {
  EXPECT_TRUE(
      merged({held({holder("1"), holder("1"), holder("1")}), idle(), idle()}).holders.empty());
}

TEST(RedisMerge, AHolderExpiresWhenNoMajorityIsLeft) {
  const auto expires = [](std::vector<int> each) {
    std::vector<Look> looks;
    for (const int ms : each) {
      if (ms < 0) {
        looks.emplace_back(down('x'));
      } else {
        looks.emplace_back(held({holder("1", ms)}));
      }
    }
    return merged(looks).holders.at(0).expires;
  };
  EXPECT_EQ(expires({10, 30, 20}), Millis{20});
  EXPECT_EQ(expires({50, 10, 30, 20, 40}), Millis{30});
  EXPECT_EQ(expires({50, -1, 30, -1, 40}), Millis{30});
  // The silent one is thought to end with the rest.
  EXPECT_EQ(merged({held({holder("1", 30)}), idle(), down('c')}).holders.at(0).expires, Millis{30});
  std::vector<Look> looks;
  for (const int ms : {50, 10, 30, 20, 40}) {
    looks.emplace_back(held({holder("1", ms)}, Mode::slots, 2));
  }
  EXPECT_EQ(merged(looks).holders.at(0).expires, Millis{30});
}

TEST(RedisMerge, AHolderIsEndlessIfAQuorumIs) {
  const auto endless = [] {
    auto out = holder("1");
    out.expires.reset();
    out.endless = true;
    return held({out});
  };
  LockInfo lock = merged({endless(), held({holder("1", 30)}), endless()});
  EXPECT_TRUE(lock.holders.at(0).endless);
  EXPECT_FALSE(lock.holders[0].expires);
  lock = merged({endless(), held({holder("1", 30)}), held({holder("1", 20)})});
  EXPECT_FALSE(lock.holders.at(0).endless);
  EXPECT_EQ(lock.holders[0].expires, Millis{30});
  lock = merged({endless(), idle(), down('c')});  // nobody knows of an end
  EXPECT_TRUE(lock.holders.at(0).endless);
}

TEST(RedisMerge, DetailsAreTheLargestFenceAndTheRecordOfTheLastRenewal) {
  std::vector<Look> looks{held({holder("1", 10)}), held({holder("1", 30)}),
                          held({holder("1", 20)})};
  const auto at = [&](std::size_t i) -> LockInfo::Holder& { return looks[i].value().holders[0]; };
  at(0).fence = 9;
  at(1).fence = 7;
  at(0).held = Millis{500};
  at(1).held = Millis{400};
  at(0).owner.label = "old";
  at(1).owner.label = "new";
  at(1).acquired_at = "then";
  const auto info = merged(looks).holders.at(0);
  EXPECT_EQ(info.fence, 9U);
  EXPECT_EQ(info.held, Millis{500});
  EXPECT_EQ(info.owner.label, "new");
  EXPECT_EQ(info.acquired_at, "then");
}

TEST(RedisMerge, WaitersOfAllServersStandInTheOrderOfTheirTime) {
  const LockInfo lock =
      merged({waited({waiter("1", 10), waiter("2", 5)}), waited({waiter("3", 7), waiter("2", 20)}),
              waited({}), down('d'), waited({waiter("", 1), waiter("", 1)})});
  Lines found;
  for (const auto& it : lock.waiters.value()) found.push_back(it.owner.id);
  EXPECT_EQ(found, (Lines{"2", "1", "3", "", ""}));
  EXPECT_EQ(lock.waiters->at(0).waiting, Millis{20});
}

TEST(RedisMerge, WhoHoldsItWaitsNoMore) {
  LockInfo late = idle();
  late.waiters = {waiter("1", 5), waiter("2", 3)};
  const LockInfo lock = merged({held({holder("1")}), held({holder("1")}), late});
  ASSERT_EQ(lock.waiters->size(), 1U);
  EXPECT_EQ(lock.waiters->at(0).owner.id, "2");
}

TEST(RedisMerge, AWaiterIsKnownAsTheHolderThatItHasBecome) {
  const std::string id(32, 'a');
  // It has not left the queue of the last server yet, where a grant of an earlier round is left,
  // too.
  LockInfo last = held({holder(id + ":1", 60'000)});
  last.waiters = {waiter(id, 900)};
  auto lock = merge({held({holder(id + ":2")}), held({holder(id + ":2")}), last});
  ASSERT_TRUE(lock);
  ASSERT_EQ(lock.value().holders.size(), 1u);
  EXPECT_EQ(lock.value().holders[0].owner.id, id + ":2");
  EXPECT_TRUE(lock.value().waiters->empty());
  EXPECT_EQ(lock.value().remarks.size(), 1u);
}

TEST(RedisMerge, WaitersAreUnknownIfNobodyKnowsThem) {
  LockInfo silent = idle();
  silent.waiters.reset();
  EXPECT_FALSE(merged({silent, silent, down('c')}).waiters);
  EXPECT_TRUE(merged({silent, idle(), silent}).waiters);
}

TEST(RedisMerge, WhatStrangersWroteIsEscapedAndCut) {
  auto odd = holder("1");
  odd.owner.host = "a\x1b[31m\n" + std::string(500, 'x');
  const Lines remarks = merged({held({odd}), idle(), idle()}).remarks;
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_EQ(remarks[0].find('\x1b'), std::string::npos);
  EXPECT_EQ(remarks[0].find('\n'), std::string::npos);
  EXPECT_LT(remarks[0].size(), 150U);
}

// --- lists

using List = Result<std::vector<LockInfo>>;

LockInfo named(const std::string& key, LockInfo lock) {
  lock.key = key;
  return lock;
}

TEST(RedisMerge, AListHasWhatAMajorityHoldsOrAnybodyWaitsFor) {
  const std::vector<List> lists{
      std::vector{named("b", held({holder("1")})), named("left", held({holder("9")}))},
      std::vector{named("a", held({holder("2")})), named("b", held({holder("1")}))},
      std::vector{named("a", held({holder("2")})), named("w", waited({waiter("3", 1)}))}};
  const auto locks = merge_lists(lists, names(3));
  ASSERT_TRUE(locks);
  Lines keys;
  for (const LockInfo& lock : locks.value()) keys.push_back(lock.key);
  EXPECT_EQ(keys, (Lines{"a", "b", "w"}));
  const LockInfo& a = locks.value()[0];
  EXPECT_EQ(ids(a), Lines{"2"});
  EXPECT_EQ(a.nodes_agreeing, 2U);
  EXPECT_EQ(a.nodes_total, 3U);
  EXPECT_EQ(a.remarks, Lines{"redis a:6379: free there"});
  EXPECT_TRUE(locks.value()[2].holders.empty());
}

TEST(RedisMerge, AListNeedsAMajorityToo) {
  const List empty = std::vector<LockInfo>();
  const std::vector<List> few{empty, down('b'), denied('c')};
  EXPECT_EQ(merge_lists(few, names(3)).error().message,
            "1 of 3 servers answered, 2 are needed: redis b:6379: connection refused; "
            "redis c:6379: wrong password");
  const std::vector<List> enough{std::vector{named("a", held({holder("1")}))}, down('b'), empty};
  const auto locks = merge_lists(enough, names(3));
  ASSERT_EQ(locks.value().size(), 1U);  // it may be held
  EXPECT_EQ(locks.value()[0].remarks,
            (Lines{"redis b:6379: connection refused", "redis c:6379: free there"}));
  const std::vector<List> none{empty, empty, empty};
  EXPECT_TRUE(merge_lists(none, names(3)).value().empty());
}

}  // namespace
}  // namespace dlock::redis
