#include <gtest/gtest.h>

#include "backends/redis/look.hpp"
#include "backends/redis/record.hpp"

namespace dlock::redis {
namespace {

Reply text(std::string value) { return {.kind = Reply::Kind::text, .text = std::move(value)}; }
Reply number(std::int64_t value) { return {.kind = Reply::Kind::integer, .integer = value}; }
Reply array(std::vector<Reply> items) {
  return {.kind = Reply::Kind::array, .items = std::move(items)};
}

std::string record(const std::string& id, int held_ms = 0) {
  return format_record({.owner = {.id = id, .host = "web1", .pid = 7},
                        .acquired_at = "then",
                        .ttl = Millis{30'000},
                        .held = Millis{held_ms},
                        .fence = 5});
}

// {type, ms left, mode, holders, waiters}
Reply answer(const std::string& type, const std::string& mode, std::vector<Reply> holders,
             std::vector<Reply> waiters = {}) {
  return array(
      {text(type), number(0), text(mode), array(std::move(holders)), array(std::move(waiters))});
}
Reply holder(const std::string& id, std::int64_t left, const std::string& its_record) {
  return array({text(id), number(left), text(its_record)});
}

TEST(RedisLook, AFreeLockHasNoHoldersAndAnEmptyQueue) {
  const LockInfo info = lock_info("job", answer("none", "", {}));
  EXPECT_EQ(info.key, "job");
  EXPECT_TRUE(info.holders.empty());
  ASSERT_TRUE(info.waiters);
  EXPECT_TRUE(info.waiters->empty());
}

TEST(RedisLook, AHolderOfOursIsKnown) {
  const LockInfo info =
      lock_info("job", answer("string", "", {holder("id1", 28'000, record("id1"))}));
  ASSERT_EQ(info.holders.size(), 1u);
  const LockInfo::Holder& ours = info.holders[0];
  EXPECT_EQ(ours.owner.host, "web1");
  EXPECT_EQ(ours.acquired_at, "then");
  EXPECT_EQ(ours.fence, 5u);
  EXPECT_EQ(ours.expires, Millis{28'000});
  EXPECT_EQ(ours.held, Millis{2'000});
  EXPECT_FALSE(ours.foreign);
}

TEST(RedisLook, TheTimeHeldCountsOverRenewalsAndIsNeverLessThanWritten) {
  const auto held = [](int held_ms, std::int64_t left) {
    const LockInfo info =
        lock_info("job", answer("string", "", {holder("id1", left, record("id1", held_ms))}));
    return info.holders.at(0).held;
  };
  EXPECT_EQ(held(100'000, 25'000), Millis{105'000});
  EXPECT_EQ(held(0, 3'600'000), Millis{0});  // the server's clock was set back
  EXPECT_EQ(held(0, INT64_MAX), Millis{0});
  EXPECT_EQ(held(9'000, 60'000), Millis{9'000});  // a late renewal has extended it
  EXPECT_EQ(held(5, -1), std::nullopt);
}

TEST(RedisLook, AHolderWhoseRecordIsAnothersOrNoneIsForeign) {
  for (const std::string& its : {std::string(), std::string("garbage"), record("id2")}) {
    const LockInfo info = lock_info("job", answer("string", "", {holder("id1", 9, its)}));
    ASSERT_EQ(info.holders.size(), 1u);
    EXPECT_EQ(info.holders[0].foreign, "unknown") << its;
    EXPECT_EQ(info.holders[0].owner.id, "id1");
    EXPECT_FALSE(info.holders[0].held);
  }
}

TEST(RedisLook, WhatNothingEndsIsEndless) {
  const auto holder_with = [](std::int64_t left, const std::string& its_record) {
    return lock_info("job", answer("string", "", {holder("id1", left, its_record)})).holders.at(0);
  };
  for (const std::string& its : {record("id1"), std::string()}) {
    EXPECT_TRUE(holder_with(-1, its).endless);
    EXPECT_EQ(holder_with(-1, its).expires, std::nullopt);
    EXPECT_FALSE(holder_with(0, its).endless);
    EXPECT_FALSE(holder_with(5, its).endless);
    EXPECT_EQ(holder_with(5, its).expires, Millis{5});
  }
  EXPECT_TRUE(lock_info("job", answer("list", "", {holder("", -1, "")})).holders.at(0).endless);
}

const std::string kOne = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";
const std::string kTwo = "8743c9c0-0795-4907-87fd-6c719a6b4586:2";

TEST(RedisLook, EachFieldOfRedissonIsAHolder) {
  LockInfo info = lock_info("job", answer("hash", "", {holder(kOne, 9, "3")}));
  ASSERT_EQ(info.holders.size(), 1u);
  EXPECT_EQ(info.mode, Mode::exclusive);
  EXPECT_EQ(info.holders[0].foreign, "redisson");
  EXPECT_EQ(info.holders[0].owner.id, kOne);
  EXPECT_EQ(info.holders[0].owner.label, "hold count 3");
  EXPECT_EQ(info.holders[0].expires, Millis{9});
  info = lock_info("job", answer("hash", "read", {holder(kOne, 9, "1"), holder(kTwo, 9, "1")}));
  EXPECT_EQ(info.mode, Mode::shared);
  ASSERT_EQ(info.holders.size(), 2u);
  EXPECT_EQ(info.holders[1].owner.id, kTwo);
  info = lock_info("job", answer("hash", "write", {holder(kOne + ":write", -1, "1")}));
  EXPECT_EQ(info.mode, Mode::exclusive);
  EXPECT_EQ(info.holders.at(0).foreign, "redisson");
  EXPECT_TRUE(info.holders.at(0).endless);
}

TEST(RedisLook, AHashOfNoKnownKindIsHeldByNobodyThatCouldBeNamed) {
  const std::vector<std::pair<std::string, std::vector<Reply>>> hashes{
      {"", {holder("owner", 9, "bob")}},
      {"", {holder("a", 9, "1"), holder("b", 9, "1")}},
      {"", {holder(kOne, 9, "1"), holder("b", 9, "1")}},
      {"", {holder("b", 9, "1"), holder(kOne, 9, "1")}},
      {"read", {holder("b", 9, "1")}},
      {"read", {holder("", 9, "")}},
      {"s", {holder("", 9, "")}},
      {"n5", {holder("", 9, "")}}};
  for (const auto& [mode, fields] : hashes) {
    const LockInfo info = lock_info("job", answer("hash", mode, fields));
    ASSERT_EQ(info.holders.size(), 1u);
    EXPECT_EQ(info.mode, Mode::exclusive);
    EXPECT_EQ(info.slots, 1u);
    EXPECT_EQ(info.holders[0].foreign, "unknown");
    EXPECT_EQ(info.holders[0].owner.id, "");
    EXPECT_FALSE(info.holders[0].owner.label);
    EXPECT_EQ(info.holders[0].expires, Millis{9});
  }
}

TEST(RedisLook, EachMemberOfSymfonyIsAHolderButForTheMark) {
  const std::string one(43, 'a'), two(43, 'b');
  const auto mark = [] { return holder("__write__", 7, ""); };
  LockInfo info = lock_info("job", answer("zset", "", {mark(), holder(one + '=', 9, "")}));
  ASSERT_EQ(info.holders.size(), 1u);
  EXPECT_EQ(info.mode, Mode::exclusive);
  EXPECT_EQ(info.holders[0].foreign, "symfony");
  EXPECT_EQ(info.holders[0].owner.id, one + '=');
  EXPECT_EQ(info.holders[0].expires, Millis{9});
  info = lock_info("job", answer("zset", "", {holder(one + '=', 9, ""), holder(two + '=', 8, "")}));
  EXPECT_EQ(info.holders.size(), 2u);
  EXPECT_EQ(info.mode, Mode::shared);
  info = lock_info("job", answer("zset", "", {holder("a", 9, ""), holder(two + '=', 8, "")}));
  EXPECT_EQ(info.holders.size(), 2u);
  EXPECT_EQ(info.mode, Mode::exclusive);
  EXPECT_EQ(info.holders[0].foreign, "unknown");
  EXPECT_EQ(info.holders[0].owner.id, "a");
  info = lock_info("job", answer("zset", "", {mark()}));
  ASSERT_EQ(info.holders.size(), 1u);  // something is there
  EXPECT_EQ(info.holders[0].owner.id, "");
  EXPECT_EQ(info.mode, Mode::exclusive);
}

TEST(RedisLook, SharedAndSlotsHoldersComeWithTheirMode) {
  const LockInfo info =
      lock_info("job", answer("zset", "n3", {holder("id1", 5, record("id1")), holder("id2", 9, "")},
                              {array({text("n"), number(1'500), text(record("id3"))}),
                               array({text("x"), number(-8), text("garbage")})}));
  EXPECT_EQ(info.mode, Mode::slots);
  EXPECT_EQ(info.slots, 3u);
  ASSERT_EQ(info.holders.size(), 2u);
  EXPECT_FALSE(info.holders[0].foreign);
  ASSERT_EQ(info.waiters->size(), 2u);
  EXPECT_EQ(info.waiters->at(0).owner.id, "id3");
  EXPECT_EQ(info.waiters->at(0).mode, Mode::slots);
  EXPECT_EQ(info.waiters->at(0).waiting, Millis{1'500});
  EXPECT_EQ(info.waiters->at(1).mode, Mode::exclusive);
  EXPECT_EQ(info.waiters->at(1).waiting, Millis{0});
  EXPECT_EQ(lock_info("job", answer("zset", "s", {})).mode, Mode::shared);
}

TEST(RedisLook, ALockThatIsOfferedHasAWaiterAndNoHolder) {
  const std::string id(32, 'a');
  LockInfo info = lock_info("job", answer("string", "", {holder(id, 900, record(id))}));
  EXPECT_TRUE(info.holders.empty());
  ASSERT_EQ(info.waiters->size(), 1u);
  EXPECT_TRUE(info.waiters->at(0).is_offered);
  EXPECT_EQ(info.waiters->at(0).owner.host, "web1");
  info = lock_info(
      "job",
      answer("zset", "s", {holder(id + ":2", 5, record(id + ":2")), holder(id, 9, record(id))}));
  ASSERT_EQ(info.holders.size(), 1u);
  EXPECT_EQ(info.holders[0].owner.id, id + ":2");
  EXPECT_EQ(info.waiters->at(0).mode, Mode::shared);
  // Another program's value that looks like the id of a waiter.
  info = lock_info("job", answer("string", "", {holder(id, 900, "")}));
  EXPECT_EQ(info.holders.at(0).foreign, "node-redlock");
}

TEST(RedisLook, AnAnswerOfAnyOtherShapeIsAFreeLock) {
  for (const Reply& odd : {Reply(), number(7), text("x"), array({}), array({array({}), text("x")}),
                           array({text("string"), number(1), number(1), text("x"), number(2)})}) {
    EXPECT_TRUE(lock_info("job", odd).holders.empty());
  }
  const LockInfo info = lock_info("job", answer("string", "", {Reply(), number(3)}));
  EXPECT_EQ(info.holders.size(), 2u);  // something is there
  EXPECT_TRUE(info.holders[0].foreign);
}

}  // namespace
}  // namespace dlock::redis
