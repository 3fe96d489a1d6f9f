#include <gtest/gtest.h>

#include "backends/mysql/sql.hpp"
#include "backends/mysql/statements.hpp"

namespace dlock::mysql {
namespace {

constexpr std::string_view kHostile = "'; DROP TABLE dlock_locks; -- \\ \" ` %_\xff";

Request hostile() {
  Request request;
  request.key = kHostile;
  request.owner.id = kHostile;
  request.owner.host = kHostile;
  request.owner.label = std::string(kHostile);
  return request;
}

TEST(MysqlSql, ALiteralIsHexadecimal) {
  EXPECT_EQ(literal(""), "X''");
  EXPECT_EQ(literal("job"), "X'6a6f62'");
  EXPECT_EQ(literal(std::string("\0'\xff", 3)), "X'0027ff'");
}

TEST(MysqlStatements, WhatIsNotOursGoesInAsLiteralsOnly) {
  for (const Method method : {Method::table, Method::row, Method::version}) {
    const Statements say(method, "dlock_", kHostile);
    const Request request = hostile();
    for (const std::string& text :
         {say.look(true), say.attempt(request, 3), say.create_row(), say.join(request),
          say.leave(kHostile), say.release(3, kHostile), say.break_grant(kHostile, kHostile),
          say.list(kHostile), Marks().wait_for(holder_mark(kHostile), Millis{5}),
          Marks().take(waiter_mark(kHostile)), Marks().session(session_mark(kHostile)),
          Marks().take_over(kHostile, Millis{5})}) {
      EXPECT_EQ(text.find("DROP"), std::string::npos) << text;
      EXPECT_EQ(text.find('\\'), std::string::npos) << text;
      EXPECT_EQ(text.find('"'), std::string::npos) << text;
      EXPECT_EQ(text.find('`'), std::string::npos) << text;
      EXPECT_EQ(text.find("--"), std::string::npos) << text;
    }
  }
}

// Percona's cluster refuses them.
TEST(MysqlStatements, NoUserLevelLockIsUsedOnACluster) {
  const Marks marks = Marks::of_cluster("FALSE");
  for (const Method method : {Method::table, Method::version}) {
    const Statements say(method, "dlock_", "job", marks);
    const Request request = hostile();
    for (const std::string& text : {say.look(true),
                                    say.list(""),
                                    say.attempt(request, 3),
                                    say.join(request),
                                    say.beat(3),
                                    say.forget_late("id", 3),
                                    say.leave("id"),
                                    say.sweep({1}),
                                    say.pass_over(1),
                                    say.forget_unused(),
                                    say.renew(3, "id", Millis{5}),
                                    say.change(3, "id", Millis{5}, "{}"),
                                    say.resume(3, "id", Millis{5}, Millis{5}),
                                    say.end_command(3, "id", Millis{5}, "{}"),
                                    say.release(3, "id"),
                                    say.break_grant("id", "why"),
                                    marks.take("m"),
                                    marks.wait_for("m", Millis{5}),
                                    marks.session(session_mark("id")),
                                    marks.take_over("id", Millis{5}),
                                    marks.release("m")}) {
      EXPECT_EQ(text.find("_LOCK("), std::string::npos) << text;
    }
  }
}

TEST(MysqlStatements, AMarkIsWaitedForInWholeSecondsAndNeverForANegativeTime) {
  EXPECT_NE(Marks().wait_for("x", Millis{1}).find(", 1)"), std::string::npos);
  EXPECT_NE(Marks().wait_for("x", Millis{2'000}).find(", 2)"), std::string::npos);
  EXPECT_NE(Marks().wait_for("x", Millis{-5'000}).find(", 0)"), std::string::npos);
}

// 64 bytes are what MySQL allows.
TEST(MysqlStatements, AMarkHasAShortName) {
  const std::string id(32, 'f');
  EXPECT_LE(holder_mark(id).size(), 64U);
  EXPECT_LE(waiter_mark(id).size(), 64U);
  EXPECT_LE(session_mark(id).size(), 64U);
  EXPECT_LE(row_mark(id).size(), 64U);
}

TEST(MysqlStatements, AServerThatMakesNoSenseGrantsNothing) {
  EXPECT_EQ(outcome({}).won, 0U);
  EXPECT_EQ(outcome({.rows = {{"1", "1", "x", "2"}}}).won, 0U);
  EXPECT_EQ(outcome({.rows = {{"1", "1", "-7", "2"}}}).won, 0U);
  const Outcome good = outcome({.rows = {{"1", "1", "7", "2"}}});
  EXPECT_TRUE(good.fit && good.has_row);
  EXPECT_EQ(good.won, 7U);
  EXPECT_EQ(good.fence, 2U);
}

TEST(MysqlSchema, ThePrefixIsThatOfBothTables) {
  const std::string text = schema("app_");
  EXPECT_NE(text.find("CREATE TABLE IF NOT EXISTS app_keys ("), std::string::npos);
  EXPECT_NE(text.find("CREATE TABLE IF NOT EXISTS app_locks ("), std::string::npos);
  EXPECT_EQ(text.find("dlock_"), std::string::npos);
}

}  // namespace
}  // namespace dlock::mysql
