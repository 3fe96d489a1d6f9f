#include <gtest/gtest.h>

#include "backends/redis/calls.hpp"

namespace dlock::redis {
namespace {

const std::string kWaiter = "0123456789abcdef0123456789abcdef";

TEST(RedisCalls, AGrantIsNamedByItsWaiterAndItsRound) {
  const WaiterId waiter{.id = kWaiter, .mode = "x", .names = names_of("", "job")};
  const auto id = parse_grant_id(waiter.grant_id(12));
  ASSERT_TRUE(id);
  EXPECT_EQ(id->waiter, kWaiter);
  EXPECT_EQ(id->round, 12u);
}

TEST(RedisCalls, AnOfferHasNoRound) {
  const auto id = parse_grant_id(kWaiter);
  ASSERT_TRUE(id);
  EXPECT_EQ(id->round, 0u);
}

TEST(RedisCalls, WhatOthersWriteIsNoGrant) {
  for (const std::string& text :
       {std::string(), std::string("x"), kWaiter + ":", kWaiter + ":0", kWaiter + ":-1",
        kWaiter + ":1x", kWaiter + "0:1", kWaiter.substr(1) + ":1", kWaiter.substr(1) + "g:1",
        kWaiter + ":99999999999"}) {
    EXPECT_FALSE(parse_grant_id(text)) << text;
  }
}

TEST(RedisCalls, MessagesSayWhenToAsk) {
  EXPECT_EQ(parse_message("go").kind, Message::Kind::ask);
  EXPECT_EQ(parse_message("go").in, Millis{0});
  EXPECT_EQ(parse_message("look 1000").in, Millis{1'000});
  EXPECT_EQ(parse_message("revoked").kind, Message::Kind::revoked);
  for (const char* text : {"", "look", "look x", "look -1", "GO", "look 99999999999"}) {
    EXPECT_EQ(parse_message(text).kind, Message::Kind::other) << text;
  }
}

TEST(RedisCalls, AnAnswerOfNoScriptGrantsNothing) {
  const Reply nothing;
  EXPECT_EQ(ask_answer(nothing).kind, AskAnswer::Kind::late);
  EXPECT_EQ(vote_answer(nothing).kind, VoteAnswer::Kind::late);
  EXPECT_FALSE(leave_answer(nothing).was_held);
  EXPECT_EQ(renew_answer(nothing).kind, RenewAnswer::Kind::held_by_another);
}

}  // namespace
}  // namespace dlock::redis
