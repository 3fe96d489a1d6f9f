#include <gtest/gtest.h>

#include "backends/redis/reply.hpp"

namespace dlock::redis {
namespace {

Reply text_reply(std::string value) {
  return {.kind = Reply::Kind::text, .text = std::move(value)};
}
Reply error(std::string value) { return {.kind = Reply::Kind::error, .text = std::move(value)}; }

TEST(RedisReply, WhatIsNotThereReadsAsNothing) {
  const Reply array{.kind = Reply::Kind::array, .items = {text_reply("a")}};
  EXPECT_EQ(array.at(0).text, "a");
  EXPECT_EQ(array.at(1).kind, Reply::Kind::nil);
  EXPECT_EQ(array.at(1).at(5).at(9).number(7), 7);
}

TEST(RedisReply, NumbersAreReadFromTextToo) {
  EXPECT_EQ((Reply{.kind = Reply::Kind::integer, .integer = -3}).number(), -3);
  EXPECT_EQ(text_reply("42").number(), 42);
  EXPECT_EQ(text_reply("-1").number(5), -1);
  for (const char* none : {"", "x", "4x", " 4", "1e3", "1.5", "99999999999999999999"}) {
    EXPECT_EQ(text_reply(none).number(7), 7) << none;
  }
  EXPECT_EQ(error("3").number(7), 7);
}

TEST(RedisReply, HasAShape) {
  const Reply one{.kind = Reply::Kind::integer, .integer = 1};
  const Reply array{.kind = Reply::Kind::array, .items = {text_reply("a"), one, {}}};
  for (const char* shape : {"*", "*$", "*$:", "*$:_"}) EXPECT_TRUE(array.is(shape)) << shape;
  for (const char* shape : {"", "$", ":", "*:", "*$$", "*$:$", "*$:_$"}) {
    EXPECT_FALSE(array.is(shape)) << shape;
  }
  EXPECT_TRUE(one.is(":"));
  EXPECT_TRUE(text_reply("").is("$"));
  EXPECT_FALSE(text_reply("").is("$$"));
  EXPECT_TRUE(error("ERR").is("-"));
  EXPECT_FALSE(Reply().is("*"));
}

const Address kServer{.password = "quite-a-long-secret", .shown = "redis h:1"};

struct Case {
  std::string text;
  Errc code;
  std::string says;
};

// As they came from Redis 5.0 to 8.0 and Valkey 8.1: straight, and from within a script.
TEST(RedisReply, TheErrorsOfEachVersionAreExplained) {
  const std::string old_end = "): @user_script:12: @user_script: 12: ";
  const std::vector<Case> cases{
      {"WRONGPASS invalid username-password pair or user is disabled.", Errc::denied,
       "wrong password"},
      {"ERR invalid password", Errc::denied, "wrong password"},
      {"ERR Client sent AUTH, but no password is set", Errc::denied, "leave it out"},
      {"ERR AUTH <password> called without any password configured for the default user. Are you "
       "sure your configuration is correct?",
       Errc::denied, "leave it out"},
      {"NOAUTH Authentication required.", Errc::denied, "--password-file"},
      {"NOPERM this user has no permissions to run the 'evalsha' command or its subcommand",
       Errc::denied, "evalsha"},
      {"NOPERM User dlock has no permissions to run the 'evalsha' command", Errc::denied,
       "evalsha"},
      {"ERR Error running script (call to f_0123" + old_end +
           "The user executing the script can't run this command or subcommand ",
       Errc::denied, "may not do this"},
      {"NOPERM ACL failure in script: User dlock has no permissions to run the 'set' command "
       "script: 0123, on @user_script:12.",
       Errc::denied, "'set'"},
      {"ERR ACL failure in script: User dlock has no permissions to run the 'set' command script: "
       "0123, on @user_script:12.",
       Errc::denied, "'set'"},
      {"ERR ACL failure in script: No permissions to access a key script: 0123, on "
       "@user_script:12.",
       Errc::denied, "access a key"},
      {"DENIED Redis is running in protected mode because ...", Errc::denied, "protected mode"},
      {"LOADING Redis is loading the dataset in memory", Errc::unreachable, "loading"},
      {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
       Errc::unreachable, "busy"},
      {"READONLY You can't write against a read only replica.", Errc::unreachable, "replica"},
      {"ERR Error running script (call to f_0123" + old_end +
           "-READONLY You can't write against a read only replica. ",
       Errc::unreachable, "replica"},
      {"READONLY You can't write against a read only replica. script: 0123, on @user_script:12.",
       Errc::unreachable, "replica"},
      {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
       Errc::unreachable, "replica"},
      {"ERR Error running script (call to f_0123" + old_end +
           "-OOM command not allowed when used memory > 'maxmemory'. ",
       Errc::unreachable, "out of memory"},
      {"OOM command not allowed when used memory > 'maxmemory'. script: 0123, on @user_script:12.",
       Errc::unreachable, "out of memory"},
      {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to "
       "disk.",
       Errc::unreachable, "cannot save"},
      {"NOREPLICAS Not enough good replicas to write.", Errc::unreachable, "too few replicas"},
      {"MOVED 3999 127.0.0.1:6381", Errc::unreachable, "cluster"},
      {"CLUSTERDOWN The cluster is down", Errc::unreachable, "cluster"},
      {"CROSSSLOT Keys in request don't hash to the same slot", Errc::unreachable, "braces"},
      {"ERR max number of clients reached", Errc::unreachable, "maxclients"},
      {"ERR DB index is out of range", Errc::invalid, "no database"},
      {"ERR Protocol error: unauthenticated multibulk length", Errc::denied, "--password-file"},
      {"ERR max number of clients + cluster connections reached", Errc::unreachable, "maxclients"},
      {"DENIED Redis is running in protected mode because protected mode is enabled and no "
       "password "
       "is set for the default user.",
       Errc::denied, "protected mode"},
      {"ERR unknown command `EVALSHA`, with args beginning with: ", Errc::unsupported, "EVALSHA"},
      {"unsupported command 'subscribe'", Errc::unsupported, "'subscribe'"},
      {"ERR Error running script (call to f_0123" + old_end +
           "Unknown Redis command called from Lua script ",
       Errc::unsupported, "lacks a command"},
      {"ERR Unknown Redis command called from script script: 0123, on @user_script:12.",
       Errc::unsupported, "lacks a command"}};
  for (const Case& one : cases) {
    const Error got = server_error(kServer, one.text);
    EXPECT_EQ(got.code, one.code) << one.text;
    EXPECT_NE(got.message.find(one.says), std::string::npos) << one.text << "\n" << got.message;
    EXPECT_EQ(got.message.rfind("redis h:1", 0), 0u) << got.message;
    EXPECT_EQ(got.is_full, one.says == std::string("maxclients"));
    EXPECT_LT(got.message.size(), 300u);
  }
}

TEST(RedisReply, AnErrorThatNobodyKnowsIsShownSafely) {
  const Error got = server_error(kServer, "WEIRD \x1b[31m " + std::string(5'000, 'x'));
  EXPECT_EQ(got.code, Errc::unreachable);
  EXPECT_EQ(got.message.find('\x1b'), std::string::npos);
  EXPECT_LT(got.message.size(), 300u);
  EXPECT_EQ(server_error(kServer, "").code, Errc::unreachable);
}

TEST(RedisReply, WordsOfAKeyAreNoCode) {
  for (const char* code : {"BUSY", "READONLY", "NOAUTH", "OOM", "invalid password", "DENIED"}) {
    const std::string key = code;
    const std::string lacks =
        "ERR unknown command `EVALSHA`, with args beginning with: `4` `" + key + "` ";
    EXPECT_EQ(server_error(kServer, lacks).code, Errc::unsupported) << key;
    EXPECT_NE(server_error(kServer, "ERR wrong: " + key).message.find("refuses"),
              std::string::npos);
    const std::string inside =
        "ERR Error running script (call to f_0): @user_script:1: "
        "@user_script: 1: WRONGTYPE " +
        key + " -" + key;
    EXPECT_NE(server_error(kServer, inside).message.find("refuses"), std::string::npos) << key;
    EXPECT_FALSE(comes_from_replica(error(inside)));
  }
  EXPECT_TRUE(error("ERR Error running script (call to f_0): @user_script:1: @user_script: 1: "
                    "WRONGTYPE Operation against a key")
                  .says("WRONGTYPE"));
  EXPECT_TRUE(error("ERR Error running script (call to f_0): @user_script:12: @user_script: 12: "
                    "-READONLY You can't write against a read only replica. ")
                  .says("READONLY"));
}

TEST(RedisReply, APasswordThatTheServerRepeatsIsNotShown) {
  for (const char* repeated :
       {"ERR syntax error near 'AUTH bob quite-a-long-secret'",
        "ERR unknown command 'AUTH', with args beginning with: 'quite-a-l"}) {
    const std::string message = server_error(kServer, repeated).message;
    EXPECT_EQ(message.find("quite-a"), std::string::npos) << message;
  }
  EXPECT_NE(server_error(kServer, "ERR syntax error").message.find("syntax"), std::string::npos);
}

TEST(RedisReply, ACodeIsAWordAndNotPartOfAnother) {
  for (const char* other :
       {"ROOM 5", "LOADINGS", "XBUSY", "BUSYGROUP exists", "ERR DB index is out of rangers"}) {
    EXPECT_NE(server_error(kServer, other).message.find("refuses"), std::string::npos) << other;
  }
}

}  // namespace
}  // namespace dlock::redis
