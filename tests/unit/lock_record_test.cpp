#include "core/lock_record.hpp"

#include <gtest/gtest.h>

namespace dlock::zookeeper {
namespace {

TEST(ZookeeperRecord, ComesBack) {
  Request request{.key = "job"};
  request.owner = {"0f3a", "web-3", 4121, "app", "./x \x1b[31m \"q\"", "https://ci/1"};
  const auto owner = parse_lock_record(format_lock_record(request));
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->id, "0f3a");
  EXPECT_EQ(owner->host, "web-3");
  EXPECT_EQ(owner->pid, 4121);
  EXPECT_EQ(owner->user, "app");
  EXPECT_EQ(owner->command, request.owner.command);
  EXPECT_EQ(owner->label, "https://ci/1");
}

TEST(ZookeeperRecord, WhatOthersWriteIsNone) {
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
}  // namespace dlock::zookeeper
