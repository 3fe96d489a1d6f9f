#include "core/lock_record.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <optional>
#include <string>
#include <string_view>

namespace dlock {
namespace {

TEST(LockRecord, ComesBack) {
  Request request{.key = "job", .ttl = Millis{2'500}};
  request.owner = {"0f3a", "web-3", 4121, "app", "./x \x1b[31m \"q\"", "https://ci/1"};
  const auto record = parse_lock_record(format_lock_record(request));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->ttl, Millis{2'500});
  const Owner* const owner = &record->owner;
  EXPECT_EQ(owner->id, "0f3a");
  EXPECT_EQ(owner->host, "web-3");
  EXPECT_EQ(owner->pid, 4121);
  EXPECT_EQ(owner->user, "app");
  EXPECT_EQ(owner->command, request.owner.command);
  EXPECT_EQ(owner->label, "https://ci/1");
}

TEST(LockRecord, HasNoTtlThatDlockRefuses) {
  for (const char* ttl : {"0", "-1", "86400001", "9223372036854775807", "1e300", "\"5\""}) {
    const auto record =
        parse_lock_record(R"({"id":"1","dlock":"1","ttl_ms":)" + std::string(ttl) + "}");
    ASSERT_TRUE(record) << ttl;
    EXPECT_FALSE(record->ttl) << ttl;
  }
}

// Threads can have little of it, and the user may have said so, too.
TEST(LockRecord, NestingTakesNoStack) {
  const std::string deep = std::string(32'000, '[') + std::string(32'000, ']');
  const std::string text = R"({"id":"1","dlock":"1","ended":)" + deep + "}";
  pthread_attr_t little;
  pthread_attr_init(&little);
  pthread_attr_setstacksize(&little, std::size_t{512} * 1024);
  struct {
    std::string_view text;
    std::optional<LockRecord> record;
  } work{text, std::nullopt};
  const auto run = [](void* argument) -> void* {
    auto& its = *static_cast<decltype(work)*>(argument);
    its.record = parse_lock_record(its.text);
    return nullptr;
  };
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, &little, run, &work), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&little);
  ASSERT_TRUE(work.record);
  EXPECT_FALSE(work.record->owner.ended);
}

TEST(LockRecord, WhatOthersWriteIsNone) {
  const std::string large = R"({"id":"1","dlock":"1","x":")" + std::string(1'000'000, 'x') + "\"}";
  for (const std::string& text :
       {std::string(), std::string("10.0.0.7"), std::string("{}"), std::string(R"({"id":"1"})"),
        std::string(R"({"dlock":"1"})"), std::string(R"({"id":7,"dlock":"1"})"),
        std::string(R"({"id":"1","dlock":"1")"), std::string("[1]"), std::string(1, '\0'), large,
        std::string(100'000, '[')}) {
    EXPECT_FALSE(parse_lock_record(text)) << text.substr(0, 40);
  }
}

}  // namespace
}  // namespace dlock
