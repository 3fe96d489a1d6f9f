#include <gtest/gtest.h>

#include "backends/redis/foreign.hpp"
#include "engine/describe.hpp"

namespace dlock::redis {
namespace {

std::string kind(std::string_view type, std::string_view text, std::string_view count = {}) {
  return foreign_holder(type, text, count).foreign.value();
}

TEST(RedisForeign, AUuidOfVersionOneAndOfOurTimesIsOfRedisPy) {
  for (const char* value : {"69234f24e5c711f1a8ca02fc00000001",   // made by Python's uuid.uuid1()
                            "692985a6e5c711f1aa2f02fc00000001",   //
                            "9ab0c000f66811deaa5c0242ac120002",   // 2010-01-01
                            "b4cc8000a83811ee8a5c0242ac120002",   // 2024-01-01
                            "b4cc8000a83811eeba5c0242ac120002",   //
                            "2dd4e980fc281244aa5c0242ac120002"})  // 2100-12-31
    EXPECT_EQ(kind("string", value), "redis-py") << value;
}

TEST(RedisForeign, AnyOtherHexOfThatLengthIsOfNodeRedlock) {
  for (const char* value : {"9a182980f66811deaa5c0242ac120002",   // 2009-12-31
                            "2e6d8000fc281244aa5c0242ac120002",   // 2101-01-01
                            "b4cc8000a83821eeaa5c0242ac120002",   // version 2
                            "b4cc8000a83841eeaa5c0242ac120002",   // version 4
                            "b4cc8000a83811ee7a5c0242ac120002",   // not that variant
                            "b4cc8000a83811eeca5c0242ac120002",   //
                            "00000000000000000000000000000000",   //
                            "ffffffffffffffffffffffffffffffff",   //
                            "ffffffffffff1fffbfffffffffffffff"})  // version 1, but of the year 5236
    EXPECT_EQ(kind("string", value), "node-redlock") << value;
}

TEST(RedisForeign, OtherStringsAreToldByLengthAndCharacters) {
  EXPECT_EQ(kind("string", "pDQF02bXvN/3zOFDsV+cTA=="), "redsync");
  EXPECT_EQ(kind("string", "Zy0qMs8wP4nXbK1vRt7LeH"), "redlock-py");
  EXPECT_EQ(kind("string", "Zy0qMs8-P4nXbK1_Rt7LeA"), "redislock");
  EXPECT_EQ(kind("string", "0xQ5vEsEX1rT7qSj+cwW1SBcEhr/h2Q8ckfM0jBYr0k="), "symfony");
}

TEST(RedisForeign, WhatFitsNothingIsUnknownAndComparedAllTheSame) {
  for (const std::string& value :
       {std::string(), std::string("1"), std::string("locked"),
        std::string("b4cc8000A83811eeaa5c0242ac120002"),      // not lower case
        std::string("b4cc8000a83811eeaa5c0242ac12000"),       // 31
        std::string("b4cc8000a83811eeaa5c0242ac1200022"),     // 33
        std::string("b4cc8000-a838-11ee-aa5c-0242ac120002"),  //
        std::string("Zy0qMs8wP4nXbK1vRt7Le"),                 // 21
        std::string("Zy0qMs8wP4nXbK1vRt7Le\xc3\xa9"),         // UTF-8
        std::string("Zy0qMs8wP4nXbK1vRt7Le\0", 22),           //
        std::string("pDQF02bXvN/3zOFDsV-cTA=="),              // not of that alphabet
        std::string("pDQF02bXvN/3zOFDsV+cTAA="),              // 17 bytes
        std::string("0xQ5vEsEX1rT7qSj+cwW1SBcEhr/h2Q8ckfM0jBYr0kk"),
        std::string("ADDED:2026-01-01T00:00:00Z"), std::string("added:x@y"),
        std::string("\x1b[31m\r\n\xff\xfe"), std::string(512, 'a')}) {
    const LockInfo::Holder holder = foreign_holder("string", value);
    EXPECT_EQ(holder.foreign, "unknown") << value;
    EXPECT_EQ(holder.owner.id, value);
    EXPECT_EQ(holder.acquired_at, "");
    EXPECT_EQ(holder.owner.host, "");
  }
}

TEST(RedisForeign, ShedLockTellsWhereAndSinceWhen) {
  const LockInfo::Holder holder =
      foreign_holder("string", "ADDED:2026-02-28T13:31:45.006Z@web-3.local");
  EXPECT_EQ(holder.foreign, "shedlock");
  EXPECT_EQ(holder.owner.id, "ADDED:2026-02-28T13:31:45.006Z@web-3.local");
  EXPECT_EQ(holder.owner.host, "web-3.local");
  EXPECT_EQ(holder.acquired_at, "2026-02-28T13:31:45.006Z");
}

TEST(RedisForeign, ATimeOfShedLockThatIsNoneIsNotShown) {
  const auto since = [](const std::string& time) {
    const LockInfo::Holder holder = foreign_holder("string", "ADDED:" + time + "@h");
    EXPECT_EQ(holder.foreign, "shedlock") << time;
    EXPECT_EQ(holder.owner.host, "h") << time;
    return holder.acquired_at;
  };
  for (const char* good : {"2026-01-01T00:00:00Z", "2024-02-29T23:59:60Z", "2026-01-01T00:00:00.1Z",
                           "2026-12-31T00:00:00.123456789Z"}) {
    EXPECT_EQ(since(good), good);
  }
  for (const char* bad : {"",
                          "Z",
                          "2026",
                          "2026-01-01T00:00:00",
                          "2026-01-01 00:00:00Z",
                          "2026-01-01T00:00:00z",
                          "2026-02-29T00:00:00Z",
                          "2026-13-01T00:00:00Z",
                          "2026-00-01T00:00:00Z",
                          "2026-01-00T00:00:00Z",
                          "2026-01-01T24:00:00Z",
                          "2026-01-01T00:60:00Z",
                          "2026-01-01T00:00:61Z",
                          "2026-01-01T00:00:00.Z",
                          "2026-01-01T00:00:00.1234567890Z",
                          "2026-01-01T00:00:00.1aZ",
                          "2026-01-01T00:00:00+01:00",
                          "2026-01-01T00:00:00\nZ",
                          "+026-01-01T00:00:00Z",
                          "-026-01-01T00:00:00Z",
                          "2026-1 -01T00:00:00Z"}) {
    EXPECT_EQ(since(bad), "") << bad;
  }
}

TEST(RedisForeign, AHostOfShedLockMayBeAnything) {
  EXPECT_EQ(foreign_holder("string", "ADDED:x@a@b").owner.host, "a@b");
  EXPECT_EQ(foreign_holder("string", "ADDED:@").owner.host, "");
  EXPECT_EQ(foreign_holder("string", "ADDED:@unknown host").owner.host, "unknown host");
}

TEST(RedisForeign, AFieldOfRedissonIsAClientAndAThread) {
  const std::string uuid = "8743c9c0-0795-4907-87fd-6c719a6b4586";
  for (const char* thread : {":1", ":-7", ":9223372036854775807", ":1:write"}) {
    const LockInfo::Holder holder = foreign_holder("hash", uuid + thread, "2");
    EXPECT_EQ(holder.foreign, "redisson") << thread;
    EXPECT_EQ(holder.owner.id, uuid + thread);
    EXPECT_EQ(holder.owner.label, "hold count 2");
  }
  for (const std::string& field :
       {uuid, uuid + ":", uuid + ":-", uuid + ":a", uuid + ":1 ", uuid + ":1:read",
        uuid + "::write", uuid + "1", std::string("mode"), std::string("8743c9c0-0795:1"),
        std::string("8743C9C0-0795-4907-87FD-6C719A6B4586:1"),
        std::string("8743c9c0-0795-490-787fd-6c719a6b4586:1"), std::string()}) {
    EXPECT_EQ(kind("hash", field, "1"), "unknown") << field;
  }
}

TEST(RedisForeign, ACountThatIsNoneIsNotShown) {
  const std::string field = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";
  for (const char* count : {"", "x", "1x", "-1", "1.5", "99999999999999999999", "\x1b[31m"}) {
    const LockInfo::Holder holder = foreign_holder("hash", field, count);
    EXPECT_EQ(holder.foreign, "redisson") << count;
    EXPECT_EQ(holder.owner.id, field);
    EXPECT_EQ(holder.owner.label, std::nullopt) << count;
  }
}

// {"owner": "bob"} has the same field whoever holds it: by that, the lock of the next would break.
TEST(RedisForeign, AFieldOfAnUnknownHashIsAHoldersOnlyIfItCounts) {
  EXPECT_EQ(foreign_holder("hash", "u:1", "1").owner.id, "u:1");
  EXPECT_EQ(foreign_holder("hash", "owner", "bob").owner.id, "");
}

TEST(RedisForeign, AMemberOfSymfonyIsItsToken) {
  const std::string token = "0xQ5vEsEX1rT7qSj+cwW1SBcEhr/h2Q8ckfM0jBYr0k=";
  EXPECT_EQ(kind("zset", token), "symfony");
  EXPECT_EQ(foreign_holder("zset", token).owner.id, token);
  EXPECT_EQ(kind("zset", "member"), "unknown");
  EXPECT_EQ(foreign_holder("zset", "member").owner.id, "member");
}

TEST(RedisForeign, NothingOfAnyOtherTypeCanBeCompared) {
  for (const char* type : {"list", "set", "stream", "ReJSON-RL", "none", ""}) {
    EXPECT_EQ(kind(type, ""), "unknown");
    EXPECT_EQ(foreign_holder(type, "x").owner.id, "");
  }
}

TEST(RedisForeign, InWordsItIsCalledByTheNameOfItsLibrary) {
  const auto words = [](std::string_view type, const std::string& text, bool endless = false) {
    LockInfo info;
    info.holders.push_back(foreign_holder(type, text, "2"));
    info.holders[0].endless = endless;
    return holders_in_words(info);
  };
  EXPECT_EQ(words("string", "x"), "another program");
  EXPECT_EQ(words("string", "x", true), "another program, and never expires");
  EXPECT_EQ(words("string", "69234f24e5c711f1a8ca02fc00000001"), "redis-py");
  EXPECT_EQ(words("string", "ADDED:2026-01-01T00:00:00Z@web-3"), "web-3 (shedlock)");
  EXPECT_EQ(words("string", "ADDED:2026-01-01T00:00:00Z@web-3", true),
            "web-3 (shedlock), and never expires");
  EXPECT_EQ(words("hash", "8743c9c0-0795-4907-87fd-6c719a6b4586:1"), "redisson (hold count 2)");
}

}  // namespace
}  // namespace dlock::redis
