#include <gtest/gtest.h>

#include "backends/redis/mark_entry.hpp"

namespace dlock::redis {
namespace {

constexpr std::int64_t kNow = 1'795'000'000'000;

std::string record() {
  Owner owner;
  owner.id = "0f3a";
  return format_mark(owner, 7, Millis{10'000});
}

std::string text(const Entry& entry) {
  return rank_of(entry) + ' ' + std::to_string(kNow + entry.left.count()) + ' ' + entry.record;
}

TEST(RedisMarkEntry, IsReadAsItWasWritten) {
  for (const std::uint64_t fence : {std::uint64_t{0}, std::uint64_t{7}, UINT64_MAX}) {
    for (const bool is_reset : {false, true}) {
      for (const Millis left : {Millis{-5}, Millis{0}, Millis{4'000}}) {
        const Entry entry{fence, is_reset, left, record()};
        const auto read = parse_entry(text(entry), kNow);
        ASSERT_TRUE(read);
        EXPECT_TRUE(read->is_same_as(entry));
        EXPECT_EQ(read->left, left);
        EXPECT_EQ(read->record, entry.record);
      }
    }
  }
}

TEST(RedisMarkEntry, RanksCompareAsTexts) {
  const std::vector<Entry> rising{{1, false, {}, ""}, {1, true, {}, ""},
                                  {2, false, {}, ""}, {10, false, {}, ""},
                                  {10, true, {}, ""}, {UINT64_MAX, false, {}, ""}};
  for (std::size_t i = 0; i < rising.size(); ++i) {
    for (std::size_t j = 0; j < rising.size(); ++j) {
      EXPECT_EQ(rising[i].is_higher_than(rising[j]), i > j);
      EXPECT_EQ(rank_of(rising[i]) > rank_of(rising[j]), i > j);
    }
  }
}

TEST(RedisMarkEntry, NothingElseIsOne) {
  const std::string good = text({7, false, Millis{1}, record()});
  ASSERT_TRUE(parse_entry(good, kNow));
  const std::string end = good.substr(22, 13);
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(parse_entry(good.substr(0, size), kNow)) << size;
  }
  for (const std::string& bad :
       {' ' + good, '1' + good, good + ' ' + record(), std::string(20, '9') + good.substr(20),
        "-0000000000000000007d " + end + ' ' + record(), good.substr(0, 22) + "-1 " + record(),
        good.substr(0, 22) + "99999999999999999 " + record(), good.substr(0, 22) + ' ' + record(),
        good.substr(0, 20) + "x " + end + ' ' + record(), good + std::string(9'000, ' ')}) {
    EXPECT_FALSE(parse_entry(bad, kNow)) << bad;
  }
}

TEST(RedisMarkEntry, WhatIsLeftIsNeverMoreThanWasAskedFor) {
  Entry entry{7, false, Millis{9'000'000'000'000'000 - kNow}, record()};
  EXPECT_EQ(parse_entry(text(entry), kNow)->left, kLongestKept);
}

TEST(RedisMarkEntry, AMarkIsAsOldAsItsTimeThatIsOver) {
  const Mark mark = mark_in({7, false, Millis{4'000}, record()}, {"job", "2026"});
  EXPECT_EQ(mark.name, (MarkName{"job", "2026"}));
  EXPECT_EQ(mark.owner.id, "0f3a");
  EXPECT_EQ(mark.fence, 7u);
  EXPECT_EQ(mark.left, Millis{4'000});
  EXPECT_EQ(mark.age, Millis{6'000});
  EXPECT_EQ(mark_in({7, false, Millis{40'000}, record()}, {"job", ""}).age, Millis{0});
}

}  // namespace
}  // namespace dlock::redis
