#include "core/lock_record.hpp"

#include <gtest/gtest.h>

namespace dlock {
namespace {

TEST(LockRecord, ComesBack) {
  Request request{.key = "job", .ttl = Millis{2'500}};
  request.owner = {"0f3a", "web-3", 4121, "app", "./x \x1b[31m \"q\"", "https://ci/1"};
  const auto record = parse_lock_record(format_lock_record(request, "boot/1/2"));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->ttl, Millis{2'500});
  EXPECT_EQ(record->life, "boot/1/2");
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
