#include "cli/lock_columns.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "cli/print_json.hpp"
#include "cli/print_text.hpp"
#include "cli/refusal.hpp"
#include "util/width.hpp"

namespace dlock::cli {
namespace {

LockInfo held_lock() {
  LockInfo lock{.key = "job"};
  LockInfo::Holder holder;
  holder.owner = {.id = "0123456789abcdef0123456789abcdef",
                  .host = "web-3.example.net",
                  .pid = 4121,
                  .user = "app",
                  .command = "./cron.sh",
                  .label = std::nullopt};
  holder.acquired_at = "2026-11-21T07:50:08.123Z";
  holder.held = Millis{130'000};
  holder.expires = Millis{21'000};
  holder.ttl = Millis{30'000};
  holder.fence = 42;
  lock.holders.push_back(holder);
  LockInfo::Waiter waiter;
  waiter.owner.host = "web-4";
  waiter.owner.pid = 7;
  waiter.mode = Mode::shared;
  waiter.waiting = Millis{1'500};
  lock.waiters = {waiter};
  return lock;
}

std::string text_of(const Columns<LockRow>& columns, const std::vector<LockRow>& rows,
                    std::size_t width = kAnyWidth) {
  return print_text(tabulate<LockRow>(columns, rows), width);
}

// What `dlock list` prints of one lock.
std::string list_of(const LockInfo& lock, std::size_t width = kAnyWidth) {
  const auto rows = holder_rows(lock);
  return text_of(list_columns(rows, width), rows, width);
}

Setting output(const std::string& columns) { return {{columns}, Layer::flag, "--output"}; }

TEST(LockColumns, TheListShowsWhatTellsSomething) {
  const LockInfo lock = held_lock();
  EXPECT_EQ(list_of(lock),
            "KEY  HOST               PID   HELD   WAIT  COMMAND\n"
            "job  web-3.example.net  4121  2m10s  1     ./cron.sh\n");
  EXPECT_EQ(list_of(lock, 80),
            "KEY  HOST   PID   HELD   WAIT  COMMAND\n"
            "job  web-3  4121  2m10s     1  cron.sh\n");
}

TEST(LockColumns, WhenALockExpiresIsShownWhereThatTellsSomething) {
  LockInfo lock = held_lock();
  const auto expires = [&] {
    const std::string text = list_of(lock);
    return text.find("EXPIRES") != std::string::npos ? text.substr(text.find('\n')) : "";
  };
  EXPECT_EQ(expires(), "");  // a dlock renews it
  lock.holders[0].expires = Millis{14'000};
  EXPECT_NE(expires().find("  late  "), std::string::npos);  // of 30 s, after 10
  lock.holders[0].owner.lease = Millis{30'000};
  EXPECT_NE(expires().find("  14s  "), std::string::npos);
}

TEST(LockColumns, ALabelStandsInPlaceOfTheCommandWhereBothDoNotFit) {
  LockInfo lock = held_lock();
  lock.holders[0].owner.label = "https://gitlab.example.com/infra/deploy/-/jobs/48213377";
  EXPECT_EQ(list_of(lock, 120),
            "KEY  HOST   PID   HELD   WAIT  COMMAND  LABEL\n"
            "job  web-3  4121  2m10s     1  cron.sh  "
            "https://gitlab.example.com/infra/deploy/-/jobs/48213377\n");
  EXPECT_EQ(list_of(lock, 80),
            "KEY  HOST   PID   HELD   WAIT  LABEL\n"
            "job  web-3  4121  2m10s     1  https://gitlab.example.com/infra/deploy/-/jobs/4…\n");
}

TEST(LockColumns, ModesNodesAndForeignHoldersAreShownWhereThereAreSome) {
  LockInfo lock = held_lock();
  lock.mode = Mode::slots;
  lock.slots = 3;
  lock.nodes_agreeing = 3;
  lock.nodes_total = 5;
  lock.waiters.reset();
  lock.holders[0].foreign = "redis-py";
  lock.holders[0].expires.reset();
  lock.holders[0].endless = true;
  EXPECT_EQ(list_of(lock),
            "KEY  MODE     NODES   HOST               PID   HELD   EXPIRES  COMMAND\n"
            "job  slots 3  3 of 5  web-3.example.net  4121  2m10s  never    ./cron.sh\n");
  lock.holders[0].slot = 2;
  EXPECT_NE(list_of(lock).find("slot 2/3"), std::string::npos);
  lock.holders[0].owner.command.clear();
  const auto all = list_of(lock);
  EXPECT_NE(all.find("(redis-py)\n"), std::string::npos) << all;
}

TEST(LockColumns, WhatStrangersWroteIsEscapedAndCutWhereItMayBe) {
  LockInfo lock = held_lock();
  lock.holders[0].owner.command = "./a\x1b[31m\xE2\x80\xAE" + std::string(100, 'x');
  const std::string text = list_of(lock, 80);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("  a\\x1b[31m\\u202e"), std::string::npos) << text;
  EXPECT_NE(text.find("…\n"), std::string::npos) << text;
  const std::string line = text.substr(text.find('\n') + 1);
  EXPECT_EQ(util::display_width(line.substr(0, line.size() - 1)), 80U) << line;
}

TEST(LockColumns, JsonHasTheFieldsOfTheDesignInItsOrder) {
  const LockInfo lock = held_lock();
  auto json = nlohmann::ordered_json::parse(print_json(lock_object(lock, {})));
  std::vector<std::string> names;
  for (const auto& item : json.items()) names.push_back(item.key());
  EXPECT_EQ(names, (std::vector<std::string>{"key", "mode", "slots", "holders", "waiters",
                                             "nodes_agreeing", "nodes_total", "remarks"}));
  EXPECT_EQ(json["remarks"], nlohmann::json::array());
  auto& holder = json["holders"][0];
  names.clear();
  for (const auto& item : holder.items()) names.push_back(item.key());
  EXPECT_EQ(names, (std::vector<std::string>{"id", "kind", "host", "pid", "user", "command",
                                             "label", "acquired_at", "held_ms", "expires_in_ms",
                                             "expires_at", "fence", "slot", "foreign"}));
  EXPECT_EQ(holder["kind"], "run");
  EXPECT_EQ(holder["id"], "0123456789ab");
  EXPECT_EQ(holder["held_ms"], 130'000);
  EXPECT_EQ(holder["fence"], 42);
  EXPECT_TRUE(holder["slot"].is_null());
  EXPECT_TRUE(holder["label"].is_null());
  EXPECT_TRUE(holder["foreign"].is_null());
  EXPECT_EQ(json["waiters"][0]["mode"], "shared");
  EXPECT_EQ(json["waiters"][0]["waiting_ms"], 1'500);
}

TEST(LockColumns, TheNumberOfASlotIsShownWhereAHolderHasOne) {
  LockInfo lock = held_lock();
  lock.mode = Mode::slots;
  lock.slots = 3;
  const auto text = [&] {
    const auto rows = holder_rows(lock);
    return text_of(list_columns(rows, 80), rows);
  };
  EXPECT_NE(text().find("slots 3"), std::string::npos) << text();
  lock.holders.push_back(lock.holders[0]);
  lock.holders[1].slot = 3;
  EXPECT_NE(text().find("slot 3/3"), std::string::npos) << text();
  const auto json = nlohmann::json::parse(print_json(lock_object(lock, {})));
  EXPECT_TRUE(json["holders"][0]["slot"].is_null());
  EXPECT_EQ(json["holders"][1]["slot"], 3);
  const auto rows = holder_rows(lock);
  EXPECT_EQ(text_of(chosen_columns(output("slot")), rows), "SLOT\n-\n3\n");
}

TEST(LockColumns, WhichCommandTookALockCanBeShown) {
  LockInfo lock = held_lock();
  lock.holders.push_back(lock.holders[0]);
  lock.holders[1].owner.kind = Owner::Kind::acquire;
  lock.holders[1].owner.pid = 0;
  lock.holders[1].owner.command = "deploy.sh";
  const auto rows = holder_rows(lock);
  const auto json = nlohmann::json::parse(print_json(lock_object(lock, {})));
  EXPECT_EQ(json["holders"][1]["kind"], "acquire");
  EXPECT_TRUE(json["holders"][1]["pid"].is_null());
  lock.holders[1].foreign = "redlock";
  EXPECT_EQ(text_of(chosen_columns(output("kind")), rows), "KIND\nrun\n-\n");
}

TEST(LockColumns, JsonOfAFreeLockAndOfUnknownWaiters) {
  const LockInfo lock{.key = "\xFF"};
  const auto json = nlohmann::json::parse(print_json(lock_object(lock, {})));
  EXPECT_EQ(json["key"], "\xEF\xBF\xBD");
  EXPECT_TRUE(json["holders"].is_array() && json["holders"].empty());
  EXPECT_TRUE(json["waiters"].is_null());
}

TEST(LockColumns, OutputPicksColumnsOfTheTableAndFieldsOfTheJson) {
  const LockInfo lock = held_lock();
  const auto columns = chosen_columns(output("pid,key,mode"));
  EXPECT_EQ(text_of(columns, holder_rows(lock)), "PID   KEY  MODE\n4121  job  exclusive\n");
  const auto json = nlohmann::json::parse(print_json(lock_object(lock, columns)));
  EXPECT_EQ(json, (nlohmann::json{{"key", "job"},
                                  {"mode", "exclusive"},
                                  {"holders", {{{"pid", 4121}}}},
                                  {"waiters", {{{"mode", "shared"}, {"pid", 7}}}}}));
  for (const char* bad : {"nope", "", "key,", "key,,pid", "KEY", "held_ms"}) {
    EXPECT_THROW((void)chosen_columns(output(bad)), Refusal) << bad;
  }
}

TEST(LockColumns, RemarksAreLines) {
  LockInfo lock{.key = "job", .nodes_agreeing = 1, .nodes_total = 3};
  const auto columns = chosen_columns(output("key,remarks"));
  EXPECT_EQ(text_of(columns, holder_rows(lock)), "KEY  REMARKS\njob  -\n");
  lock.remarks = {"b: free there", "c: \x1b[31m"};
  EXPECT_EQ(text_of(columns, holder_rows(lock)),
            "KEY  REMARKS\njob  b: free there; c: \\x1b[31m\n");
  const auto json = nlohmann::json::parse(print_json(lock_object(lock, columns)));
  EXPECT_EQ(json["remarks"], (nlohmann::json{"b: free there", "c: \x1b[31m"}));
}

TEST(LockColumns, EveryColumnHasANameOfItsOwn) {
  const auto names = column_names();
  const std::set<std::string_view> different(names.begin(), names.end());
  EXPECT_EQ(different.size(), names.size());
  EXPECT_EQ(different.count(""), 0U);
}

}  // namespace
}  // namespace dlock::cli
