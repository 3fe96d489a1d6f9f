#include <gtest/gtest.h>

#include "backends/redis/record.hpp"

namespace dlock::redis {
namespace {

Record example() {
  return {.owner = {.id = "0f3a",
                    .host = "web1",
                    .pid = 4711,
                    .user = "www",
                    .command = "./x \"q\"\n\x1b",
                    .label = "https://ci/\xC3\xA4"},
          .mode = Mode::slots,
          .slots = 3,
          .acquired_at = "2026-11-21T07:50:08.123Z",
          .ttl = Millis{30'000},
          .held = Millis{1'234},
          .fence = 42,
          .slot = 2};
}

TEST(RedisRecord, ComesBackAsItWasWritten) {
  const std::string text = format_record(example());
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(text.front(), '{');
  EXPECT_EQ(text.back(), '}');  // acquire.lua puts the fence before it
  const auto read = parse_record(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->owner.id, "0f3a");
  EXPECT_EQ(read->owner.host, "web1");
  EXPECT_EQ(read->owner.pid, 4711);
  EXPECT_EQ(read->owner.user, "www");
  EXPECT_EQ(read->owner.command, example().owner.command);
  EXPECT_EQ(read->owner.label, example().owner.label);
  EXPECT_EQ(read->mode, Mode::slots);
  EXPECT_EQ(read->slots, 3u);
  EXPECT_EQ(read->acquired_at, example().acquired_at);
  EXPECT_EQ(read->ttl, Millis{30'000});
  EXPECT_EQ(read->held, Millis{1'234});
  EXPECT_EQ(read->fence, 42u);
  EXPECT_EQ(read->slot, 2u);
}

TEST(RedisRecord, TakesTheFenceThatTheScriptAdds) {
  Record record = example();
  record.fence.reset();
  std::string text = format_record(record);
  EXPECT_FALSE(parse_record(text)->fence);
  text.back() = ',';
  EXPECT_EQ(parse_record(text + "\"fence\":7}")->fence, 7u);
}

TEST(RedisRecord, WhateverElseStandsThereIsNone) {
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += "{\"a\":[";
  for (const std::string& text :
       {std::string(), std::string("garbage"), std::string("[]"), std::string("null"),
        std::string("{}"), std::string("{\"id\":\"x\"}"), std::string("{\"mode\":\"shared\"}"),
        std::string(R"({"id":"x","mode":"exclusive","slots":0})"),
        std::string(R"({"id":"x","mode":"exclusive","slots":4294967296})"),
        std::string(R"({"id":"x","mode":"exclusive","slots":1.5})"),
        std::string(R"({"id":7,"mode":"exclusive","slots":1})"),
        std::string(R"({"id":"x","mode":"EXCLUSIVE","slots":1})"),
        std::string(R"({"id":"x","mode":"exclusive","slots":1} x)"), deep, std::string(10, '\0'),
        std::string("\xff\xfe{}"), std::string(70'000, ' ') + "{}"}) {
    EXPECT_FALSE(parse_record(text)) << text.substr(0, 60);
  }
}

TEST(RedisRecord, NumbersThatMakeNoSenseAreNotBelieved) {
  const auto read = parse_record(
      R"({"id":"x","mode":"exclusive","slots":1,"ttl_ms":-5,"held_ms":"9","fence":-1,"pid":1e99})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->ttl, Millis{0});
  EXPECT_EQ(read->held, Millis{0});
  EXPECT_FALSE(read->fence);
}

TEST(RedisRecord, ANumberIsOneOfTheSlots) {
  const auto slot = [](const std::string& mode, const std::string& end) {
    return parse_record(R"({"id":"x","mode":")" + mode + R"(","slots":3)" + end + '}')->slot;
  };
  EXPECT_EQ(slot("slots", R"(,"slot":3)"), 3u);
  EXPECT_EQ(slot("slots", ""), std::nullopt);  // of an earlier dlock
  EXPECT_EQ(slot("exclusive", R"(,"slot":1)"), std::nullopt);
  for (const char* odd : {"0", "4", "-1", "1.5", "\"1\"", "null", "4294967297"}) {
    EXPECT_EQ(slot("slots", std::string(R"(,"slot":)") + odd), std::nullopt) << odd;
  }
}

TEST(RedisRecord, AModeAndItsTextAreTheSame) {
  EXPECT_EQ(mode_text(Mode::exclusive, 1), "x");
  EXPECT_EQ(mode_text(Mode::shared, 1), "s");
  EXPECT_EQ(mode_text(Mode::slots, 12), "n12");
  for (const auto& [mode, slots] : {std::pair{Mode::exclusive, 1u}, std::pair{Mode::shared, 1u},
                                    std::pair{Mode::slots, 4'000'000'000u}}) {
    const auto read = parse_mode_text(mode_text(mode, slots));
    EXPECT_EQ(read.mode, mode);
    EXPECT_EQ(read.slots, slots);
  }
  EXPECT_EQ(parse_mode_text("").mode, Mode::exclusive);
  EXPECT_EQ(parse_mode_text("?").mode, Mode::exclusive);
  for (const char* odd : {"n", "n0", "n-1", "nx", "n99999999999"}) {
    EXPECT_EQ(parse_mode_text(odd).mode, Mode::slots) << odd;
    EXPECT_EQ(parse_mode_text(odd).slots, 1u) << odd;
  }
}

}  // namespace
}  // namespace dlock::redis
