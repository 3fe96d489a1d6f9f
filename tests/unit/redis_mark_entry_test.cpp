#include <gtest/gtest.h>

#include "backends/redis/mark_entry.hpp"

namespace dlock::redis {
namespace {

constexpr std::int64_t kNow = 1'795'000'000'000;

std::string record() {
  static const std::string text = format_mark(Owner{.id = "0f3a"}, 7, Millis{10'000});
  return text;
}

std::string text(const Entry& entry, std::uint64_t fence = 7) {
  std::string rank = rank_of(fence);
  if (entry.is_forgotten) rank.back() = 'r';
  return rank + ' ' + std::to_string(kNow + entry.left.count()) + ' ' + entry.record;
}

TEST(RedisMarkEntry, IsReadAsItWasWritten) {
  for (const std::uint64_t fence : {std::uint64_t{0}, std::uint64_t{7}, UINT64_MAX}) {
    for (const bool is_forgotten : {false, true}) {
      for (const Millis left : {Millis{-5}, Millis{0}, Millis{4'000}}) {
        const auto read = parse_entry(text({is_forgotten, left, record()}, fence), kNow);
        ASSERT_TRUE(read);
        EXPECT_EQ(read->is_forgotten, is_forgotten);
        EXPECT_EQ(read->left, left);
        EXPECT_EQ(read->record, record());
      }
    }
  }
}

TEST(RedisMarkEntry, NothingElseIsOne) {
  const std::string good = text({false, Millis{1}, record()});
  ASSERT_TRUE(parse_entry(good, kNow));
  const std::string end = good.substr(22, 13);
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(parse_entry(good.substr(0, size), kNow)) << size;
  }
  for (const std::string& bad :
       {' ' + good, '1' + good, good + ' ' + record(),
        "-0000000000000000007d " + end + ' ' + record(), good.substr(0, 22) + "-1 " + record(),
        good.substr(0, 22) + "99999999999999999 " + record(), good.substr(0, 22) + ' ' + record(),
        good.substr(0, 20) + "x " + end + ' ' + record(), good + std::string(9'000, ' ')}) {
    EXPECT_FALSE(parse_entry(bad, kNow)) << bad;
  }
}

TEST(RedisMarkEntry, WhatIsLeftIsNeverMoreThanWasAskedFor) {
  const Entry entry{false, Millis{9'000'000'000'000'000 - kNow}, record()};
  EXPECT_EQ(parse_entry(text(entry), kNow)->left, kLongestKept);
}

TEST(RedisMarkEntry, AMarkIsAsOldAsItsTimeThatIsOver) {
  const auto mark = mark_in({false, Millis{4'000}, record()}, {"job", "2026"});
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->name, (MarkName{"job", "2026"}));
  EXPECT_EQ(mark->owner.id, "0f3a");
  EXPECT_EQ(mark->fence, 7u);
  EXPECT_EQ(mark->left, Millis{4'000});
  EXPECT_EQ(mark->age, Millis{6'000});
  EXPECT_EQ(mark_in({false, Millis{40'000}, record()}, {"job", ""})->age, Millis{0});
}

TEST(RedisMarkEntry, WhatIsForgottenOrOverIsNoMark) {
  EXPECT_FALSE(mark_in({true, Millis{4'000}, record()}, {"job", ""}));
  EXPECT_FALSE(mark_in({false, Millis{0}, record()}, {"job", ""}));
}

}  // namespace
}  // namespace dlock::redis
