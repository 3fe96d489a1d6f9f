// Locks of other programs under the same name.
#include <gtest/gtest.h>

#include "redis_fixture.hpp"

namespace dlock::test {
namespace {

class RedisForeign : public RedisTest {
 protected:
  /// Of a client that uses bare names, as other programs do.
  std::unique_ptr<Backend> bare() const { return connect_redis(server->port(), ""); }
  LockInfo::Holder holder() {
    const LockInfo info = inspect(*bare(), "job");
    EXPECT_GE(info.holders.size(), 1u);
    return info.holders.empty() ? LockInfo::Holder() : info.holders[0];
  }
  void expect_busy_for_all() {
    auto client = bare();
    for (const Request& wanted : {request("job"), shared("job"), slots("job", 2)}) {
      const auto lease = try_once(*client, wanted);
      EXPECT_EQ(code_of(lease), Errc::busy) << lease.error().message;
      const auto waited = client->acquire(wanted, {.until = in(30)});
      EXPECT_EQ(code_of(waited), Errc::busy) << waited.error().message;
    }
  }
  bool is_waited_for() {
    return eventually([&] { return inspect(*bare(), "job").waiters->size() == 1; });
  }
  bool break_lock(const std::string& id) {
    const auto broken = bare()->force_release("job", id, {"test"}, soon());
    EXPECT_TRUE(broken) << (broken ? "" : broken.error().message);
    return broken && broken.value();
  }
  /// As Symfony's RedisStore does.
  void save(const std::string& token, int ttl_ms, bool exclusive) {
    server->command(
        "EVAL",
        "local time = redis.call('TIME')\n"
        "local over = string.format('%.0f', time[1] * 1000 + time[2] / 1000 + ARGV[2])\n"
        "redis.call('ZADD', KEYS[1], over, ARGV[1])\n"
        "if ARGV[3] == '1' then redis.call('ZADD', KEYS[1], over, '__write__') end\n"
        "redis.call('PEXPIREAT', KEYS[1],\n"
        "           redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2])",
        "1", "job", token, std::to_string(ttl_ms), exclusive ? "1" : "0");
  }
};

using Words = std::vector<std::string>;

const std::string kClient = "8743c9c0-0795-4907-87fd-6c719a6b4586";
const std::string kOther = "0b6a1f3e-52c1-4b6e-9d5c-3f0c7e1a2d4b";
const std::string kToken = "0xQ5vEsEX1rT7qSj+cwW1SBcEhr/h2Q8ckfM0jBYr0k=";
const std::string kOtherToken = "zzQ5vEsEX1rT7qSj+cwW1SBcEhr/h2Q8ckfM0jBYr0k=";

/// A lock as its library writes it, and what is to be seen of it.
struct Theirs {
  std::string foreign;
  Words make;
  std::string id;
  Mode mode = Mode::exclusive;
};
Theirs theirs(const std::string& foreign, const std::string& value) {
  return {foreign, {"SET", "job", value, "NX", "PX", "60000"}, value};
}
const std::vector<Theirs> kTheirs{
    theirs("redis-py", "b4cc8000a83811eeaa5c0242ac120002"),
    theirs("node-redlock", "0ae4f05ce1d83bdb2b1d4fe7c0bdfa43"),
    theirs("redsync", "pDQF02bXvN/3zOFDsV+cTA=="),
    theirs("redlock-py", "Zy0qMs8wP4nXbK1vRt7LeH"),
    theirs("symfony", kToken),
    theirs("shedlock", "ADDED:2026-02-28T13:31:45.006Z@web-3"),
    theirs("unknown", "value of theirs"),
    theirs("unknown", std::string("\x1b[2J\r\n\0\xff\xfe\"'\\", 12)),
    {"redisson", {"HSET", "job", kClient + ":1", "2"}, kClient + ":1"},
    {"redisson",
     {"HSET", "job", "mode", "read", kClient + ":1", "1"},
     kClient + ":1",
     Mode::shared},
    {"redisson", {"HSET", "job", "mode", "write", kClient + ":1:write", "1"}, kClient + ":1:write"},
    {"unknown", {"HSET", "job", "u:1", "1"}, "u:1"},
    {"symfony", {"ZADD", "job", "4102444800000", kToken}, kToken, Mode::shared},
    {"symfony", {"ZADD", "job", "4102444800000", kToken, "4102444800000", "__write__"}, kToken},
    {"unknown", {"ZADD", "job", "1", "member"}, "member"}};

TEST_F(RedisForeign, WhatWeHoldIsHeldForOthersAndWhatTheyHoldForUs) {
  auto client = bare();
  auto lease = hold(*client, request("job"));
  EXPECT_EQ(server->command("SET", "job", "other", "NX", "PX", "5000"), "(nil)");
  EXPECT_EQ(server->command("GET", "job"), lease->owner_id());
  EXPECT_TRUE(release(*lease));
  EXPECT_EQ(server->command("SET", "job", "other", "NX", "PX", "60000"), "OK");
  expect_busy_for_all();
  EXPECT_EQ(server->command("GET", "job"), "other");
  EXPECT_GT(std::stol(server->command("PTTL", "job")), 40'000);
}

TEST_F(RedisForeign, EachIsShownWithTheNameOfItsLibraryAndWhatIsKnown) {
  for (const Theirs& one : kTheirs) {
    server->command("FLUSHALL");
    server->run(one.make);
    const LockInfo endless = inspect(*bare(), "job");
    server->command("PEXPIRE", "job", "50000");
    const LockInfo info = inspect(*bare(), "job");
    EXPECT_EQ(info.mode, one.mode) << one.id;
    ASSERT_EQ(info.holders.size(), 1u) << one.id;
    const LockInfo::Holder& shown = info.holders[0];
    EXPECT_EQ(shown.foreign, one.foreign) << one.id;
    EXPECT_EQ(shown.owner.id, one.id);
    ASSERT_TRUE(shown.expires) << one.id;
    EXPECT_GT(*shown.expires, Millis{40'000}) << one.id;
    EXPECT_FALSE(shown.endless) << one.id;
    EXPECT_FALSE(shown.held) << one.id;
    ASSERT_EQ(endless.holders.size(), 1u) << one.id;
    const bool has_ttl = one.make[0] == "SET";
    EXPECT_EQ(endless.holders[0].endless, !has_ttl) << one.id;
    EXPECT_EQ(endless.holders[0].expires.has_value(), has_ttl) << one.id;
    EXPECT_EQ(endless.holders[0].foreign, one.foreign) << one.id;
  }
}

TEST_F(RedisForeign, ALockOfOursThatSomebodyMadeEndlessIsShownSo) {
  auto client = bare();
  auto lease = hold(*client, request("job"));
  EXPECT_FALSE(holder().endless);
  server->command("PERSIST", "job");
  EXPECT_TRUE(holder().endless);
  EXPECT_FALSE(holder().expires);
  EXPECT_FALSE(holder().foreign);
  EXPECT_TRUE(renew(*lease));
  EXPECT_FALSE(holder().endless);
  EXPECT_TRUE(release(*lease));
}

TEST_F(RedisForeign, ShedLockAndRedissonTellMore) {
  server->command("SET", "job", "ADDED:2026-02-28T13:31:45.006Z@web-3", "PX", "60000");
  EXPECT_EQ(holder().owner.host, "web-3");
  EXPECT_EQ(holder().acquired_at, "2026-02-28T13:31:45.006Z");
  server->command("DEL", "job");
  server->command("HSET", "job", kClient + ":7", "3");
  EXPECT_EQ(holder().owner.label, "hold count 3");
}

TEST_F(RedisForeign, AWaiterIsWokenWhenTheirLockIsDeleted) {
  for (const char* how : {"at once", "later"}) {
    server->command("SET", "job", "other", "PX", "60000");
    Waiting waiting(bare(), request("job"));
    ASSERT_TRUE(is_waited_for());
    if (how == std::string("later")) {
      EXPECT_FALSE(waiting.done(100));
    }
    std::unique_ptr<Lease> lease;
    const auto took = time_of([&] {
      server->command("DEL", "job");
      lease = waiting.lease();
    });
    EXPECT_LT(took, here(Millis{1'000})) << how;
    RecordProperty(how[0] == 'l' ? "ms_later" : "ms_at_once", static_cast<int>(took.count()));
    ASSERT_TRUE(lease);
    EXPECT_TRUE(release(*lease));
  }
}

TEST_F(RedisForeign, AWaiterIsWokenWhenTheirLockExpires) {
  const Deadline over = in(500);
  server->command("SET", "job", "other", "PX", "500");
  Waiting waiting(bare(), request("job"));
  EXPECT_TRUE(waiting.lease());
  EXPECT_GE(Clock::now(), over);
  EXPECT_LT(Clock::now(), over + here(Millis{1'000}));
  RecordProperty("ms",
                 static_cast<int>(std::chrono::duration_cast<Millis>(Clock::now() - over).count()));
}

TEST_F(RedisForeign, AWaiterIsWokenEachTimeTheirLockIsReplaced) {
  server->command("SET", "job", "one", "PX", "60000");
  Waiting one(bare(), request("job"));
  ASSERT_TRUE(is_waited_for());
  for (const char* other : {"two", "three"}) server->command("SET", "job", other, "PX", "60000");
  EXPECT_FALSE(one.done(50));
  server->command("DEL", "job");
  EXPECT_LT(time_of([&] { EXPECT_TRUE(one.lease()); }), here(Millis{1'000}));
}

TEST_F(RedisForeign, AWaiterWhoseConnectionsAreKilledIsStillWoken) {
  for (const char* kind : {"normal", "pubsub"}) {
    server->command("SET", "job", "other");
    Waiting waiting(bare(), request("job"));
    ASSERT_TRUE(is_waited_for());
    a.reset();
    b.reset();
    server->command("CLIENT", "KILL", "TYPE", kind);
    EXPECT_FALSE(waiting.done(100));
    server->command("DEL", "job");
    std::unique_ptr<Lease> lease;
    EXPECT_LT(time_of([&] { lease = waiting.lease(); }), here(Millis{2'500})) << kind;
    ASSERT_TRUE(lease);
    EXPECT_TRUE(release(*lease));
  }
}

TEST_F(RedisForeign, AnyTypeIsBusyAndLeftAsItIs) {
  const std::vector<std::vector<std::string>> makers{{"HSET", "job", "8743c9c0-0795:1", "1"},
                                                     {"ZADD", "job", "1", "member", "2", "other"},
                                                     {"RPUSH", "job", "x"},
                                                     {"SADD", "job", "x"},
                                                     {"XADD", "job", "*", "f", "v"},
                                                     {"SETBIT", "job", "7", "1"}};
  for (const auto& maker : makers) {
    server->command("FLUSHALL");
    server->run(maker);
    const std::string before = server->command("DUMP", "job");
    expect_busy_for_all();
    EXPECT_TRUE(holder().foreign) << maker[0];
    const std::string id = holder().owner.id;
    EXPECT_FALSE(*bare()->force_release("job", "somebody", {"test"}, soon())) << maker[0];
    EXPECT_EQ(server->command("DUMP", "job"), before) << maker[0];
    EXPECT_TRUE(bare()->list("", soon()).value().empty());
  }
}

TEST_F(RedisForeign, WhatHasNothingToCompareCannotBeBroken) {
  const std::vector<Words> makers{{"RPUSH", "job", "x"},
                                  {"SADD", "job", "x"},
                                  {"XADD", "job", "*", "f", "v"},
                                  {"SET", "job", ""},
                                  {"HSET", "job", "owner", "bob"},
                                  {"HSET", "job", "u:1", "1", "u:2", "1"},
                                  {"HSET", "job", "mode", "read"},
                                  {"HSET", "job", std::string(513, 'x'), "1"},
                                  {"ZADD", "job", "1", "__write__"},
                                  {"ZADD", "job", "1", std::string(513, 'x')}};
  for (const Words& maker : makers) {
    server->command("FLUSHALL");
    server->run(maker);
    const std::string before = server->command("DUMP", "job");
    const LockInfo info = inspect(*bare(), "job");
    ASSERT_EQ(info.holders.size(), 1u) << maker[2];
    EXPECT_EQ(info.holders[0].foreign, "unknown") << maker[2];
    EXPECT_EQ(info.holders[0].owner.id, "") << maker[2];
    EXPECT_TRUE(info.holders[0].endless) << maker[2];
    for (const char* id : {"", "x", "mode", "__write__"}) {
      EXPECT_FALSE(break_lock(id)) << maker[2];
    }
    EXPECT_EQ(server->command("DUMP", "job"), before) << maker[2];
  }
}

TEST_F(RedisForeign, ALockOfOthersCanBeBrokenByTheIdThatIsShown) {
  Millis longest{0};
  for (const Theirs& one : kTheirs) {
    server->command("FLUSHALL");
    server->run(one.make);
    Waiting waiting(bare(), request("job"));
    ASSERT_TRUE(is_waited_for());
    std::unique_ptr<Lease> lease;
    const auto took = time_of([&] {
      EXPECT_TRUE(break_lock(holder().owner.id)) << one.id;
      lease = waiting.lease();
    });
    EXPECT_LT(took, here(Millis{1'000})) << one.id;
    longest = std::max(longest, took);
    ASSERT_TRUE(lease);
    EXPECT_EQ(server->command("KEYS", "*revoked*"), "") << one.id;
    EXPECT_FALSE(break_lock(one.id)) << one.id;
    EXPECT_TRUE(renew(*lease));
    EXPECT_TRUE(release(*lease));
    EXPECT_EQ(server->command("KEYS", "*"), "{job}:fence") << one.id;
  }
  RecordProperty("ms", static_cast<int>(longest.count()));
}

// Without it, a waiter would ask later.
TEST_F(RedisForeign, WhoBreaksALockOfOthersCallsTheNext) {
  for (const Theirs& one : kTheirs) {
    server->command("FLUSHALL");
    Sleeper sleeper(*server, "job", "x");
    Words make = one.make;
    make[1] = "dlock:job";
    server->run(make);
    EXPECT_TRUE(*a->force_release("job", one.id, {"test"}, soon())) << one.id;
    sleeper.wait_for_call();
  }
}

TEST_F(RedisForeign, WhatHasChangedSinceItWasShownIsNotBroken) {
  for (const Theirs& one : kTheirs) {
    for (const Theirs& next : kTheirs) {
      if (next.id == one.id) continue;
      server->command("FLUSHALL");
      server->run(one.make);
      const std::string id = holder().owner.id;
      server->command("DEL", "job");
      server->run(next.make);
      server->command("PEXPIRE", "job", "50000");
      const std::string before = server->command("DUMP", "job");
      EXPECT_FALSE(break_lock(id)) << one.id << " / " << next.id;
      EXPECT_EQ(server->command("DUMP", "job"), before) << one.id << " / " << next.id;
      EXPECT_GT(std::stol(server->command("PTTL", "job")), 30'000);
      EXPECT_EQ(server->command("KEYS", "*"), "job") << one.id << " / " << next.id;
    }
  }
}

TEST_F(RedisForeign, ALongValueIsComparedAsFarAsItIsShown) {
  const std::string shown(512, 'x');
  for (const std::string& value : {shown, shown + "y", shown + std::string(1'000'000, 'z')}) {
    server->command("SET", "job", value);
    EXPECT_EQ(holder().owner.id, shown);
    EXPECT_FALSE(break_lock(shown + "y"));
    EXPECT_FALSE(break_lock(shown.substr(1)));
    EXPECT_EQ(server->command("EXISTS", "job"), "1");
    EXPECT_TRUE(break_lock(shown));
    EXPECT_EQ(server->command("EXISTS", "job"), "0");
  }
  server->command("SET", "job", shown.substr(1) + "y");
  EXPECT_FALSE(break_lock(shown));
  server->command("SET", "job", "short");
  EXPECT_FALSE(break_lock("shor"));
  EXPECT_EQ(server->command("GET", "job"), "short");
}

// --- Redisson

/// Hears what Redisson's waiters hear.
class RedissonWaiter {
 public:
  RedissonWaiter(const RedisServer& server, std::string channel)
      : server_(server), client_(server), channel_(std::move(channel)) {
    client_.send("SUBSCRIBE " + channel_);
    client_.read_until(":1\r\n");
  }
  /// Since the last call.
  std::string heard() {
    const std::string mark = "mark" + std::to_string(++marks_);
    server_.command("PUBLISH", channel_, mark);
    const std::string text = client_.read_until(mark + "\r\n");
    std::string out;
    for (const char* message : {"0", "1"}) {
      const std::string wanted = std::string("$1\r\n") + message + "\r\n";
      for (auto at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) {
        out += message;
      }
    }
    return out;
  }

 private:
  const RedisServer& server_;
  RawClient client_;
  const std::string channel_;
  int marks_ = 0;
};

TEST_F(RedisForeign, BreakingALockOfRedissonWakesItsWaiters) {
  RedissonWaiter waiter(*server, "redisson_lock__channel:{job}");
  server->command("HSET", "job", kClient + ":1", "2");
  EXPECT_FALSE(break_lock(kClient + ":2"));
  EXPECT_EQ(waiter.heard(), "");
  EXPECT_TRUE(break_lock(kClient + ":1"));
  EXPECT_EQ(waiter.heard(), "0");
}

TEST_F(RedisForeign, TheChannelOfANameWithBracesHasNoMore) {
  RedissonWaiter waiter(*server, "redisson_lock__channel:a{b}");
  server->command("HSET", "a{b}", kClient + ":1", "1");
  EXPECT_TRUE(*bare()->force_release("a{b}", kClient + ":1", {"test"}, soon()));
  EXPECT_EQ(waiter.heard(), "0");
}

TEST_F(RedisForeign, ReadersOfRedissonAreBrokenOneByOne) {
  RedissonWaiter waiter(*server, "redisson_rwlock:{job}");
  server->command("HSET", "job", "mode", "read", kClient + ":1", "1", kOther + ":5", "2");
  server->command("PEXPIRE", "job", "60000");
  const LockInfo info = inspect(*bare(), "job");
  EXPECT_EQ(info.mode, Mode::shared);
  ASSERT_EQ(info.holders.size(), 2u);
  EXPECT_TRUE(break_lock(kOther + ":5"));
  EXPECT_FALSE(break_lock(kOther + ":5"));
  EXPECT_EQ(server->command("HGETALL", "job"), "mode\nread\n" + kClient + ":1\n1");
  EXPECT_EQ(waiter.heard(), "");
  EXPECT_TRUE(break_lock(kClient + ":1"));
  EXPECT_EQ(server->command("EXISTS", "job"), "0");
  EXPECT_EQ(waiter.heard(), "0");
}

TEST_F(RedisForeign, AWriterOfRedissonThatReadsTooLeavesAReader) {
  RedissonWaiter waiter(*server, "redisson_rwlock:{job}");
  server->command("HSET", "job", "mode", "write", kClient + ":1:write", "1", kClient + ":1", "1");
  EXPECT_EQ(inspect(*bare(), "job").mode, Mode::exclusive);
  EXPECT_TRUE(break_lock(kClient + ":1:write"));
  EXPECT_EQ(server->command("HGETALL", "job"), "mode\nread\n" + kClient + ":1\n1");
  EXPECT_EQ(waiter.heard(), "1");
  server->command("HSET", "job", "mode", "write", kClient + ":1:write", "1");
  EXPECT_TRUE(break_lock(kClient + ":1"));
  EXPECT_EQ(inspect(*bare(), "job").mode, Mode::exclusive);
  EXPECT_EQ(waiter.heard(), "");
  EXPECT_TRUE(break_lock(kClient + ":1:write"));
  EXPECT_EQ(server->command("EXISTS", "job"), "0");
  EXPECT_EQ(waiter.heard(), "1");
}

TEST_F(RedisForeign, WhoMayNotPublishForRedissonBreaksItAllTheSame) {
  server->command("ACL", "SETUSER", "dlock", "on", ">pw", "~*", "+@all", "resetchannels");
  server->command("HSET", "job", kClient + ":1", "1");
  auto user = connect_redis(server->port(), "", Millis{5'000}, "dlock:pw@");
  const auto broken = user->force_release("job", kClient + ":1", {"test"}, soon());
  ASSERT_TRUE(broken) << broken.error().message;
  EXPECT_TRUE(broken.value());
  EXPECT_EQ(server->command("EXISTS", "job"), "0");
}

// --- Symfony

TEST_F(RedisForeign, ReadersOfSymfonyAreBrokenOneByOne) {
  save(kToken, 90'000, false);
  save(kOtherToken, 30'000, false);
  const LockInfo info = inspect(*bare(), "job");
  EXPECT_EQ(info.mode, Mode::shared);
  ASSERT_EQ(info.holders.size(), 2u);
  EXPECT_EQ(info.holders[0].owner.id, kOtherToken);
  EXPECT_LE(info.holders[0].expires, Millis{30'000});
  EXPECT_GT(info.holders[1].expires, Millis{60'000});
  EXPECT_TRUE(break_lock(kToken));
  EXPECT_EQ(server->command("ZRANGE", "job", "0", "-1"), kOtherToken);
  const long left = std::stol(server->command("PTTL", "job"));
  EXPECT_TRUE(left > 10'000 && left <= 30'000) << left;
  EXPECT_TRUE(break_lock(kOtherToken));
  EXPECT_EQ(server->command("EXISTS", "job"), "0");
}

TEST_F(RedisForeign, AReaderOfSymfonyWhoseTimeIsOverIsNoHolder) {
  save(kOtherToken, 30'000, false);
  save(kToken, -1'000, false);
  ASSERT_EQ(server->command("ZCARD", "job"), "2");
  const LockInfo info = inspect(*bare(), "job");
  ASSERT_EQ(info.holders.size(), 1u);
  EXPECT_EQ(info.holders[0].owner.id, kOtherToken);
  EXPECT_FALSE(break_lock(kToken));
  EXPECT_EQ(server->command("ZCARD", "job"), "2");
}

TEST_F(RedisForeign, TheMarkOfAWriterGoesWithTheWriter) {
  save(kToken, 30'000, true);
  const LockInfo info = inspect(*bare(), "job");
  EXPECT_EQ(info.mode, Mode::exclusive);
  ASSERT_EQ(info.holders.size(), 1u);
  EXPECT_FALSE(break_lock("__write__"));
  EXPECT_EQ(server->command("ZCARD", "job"), "2");
  EXPECT_TRUE(break_lock(kToken));
  EXPECT_EQ(server->command("EXISTS", "job"), "0");
}

// It is busy for everybody, so somebody must be shown, and a waiter must not ask without end.
TEST_F(RedisForeign, AZsetThatOutlivesItsMembersIsStillHeld) {
  server->command("ZADD", "job", "1000000000001", kToken, "1000000000002", "__write__");
  EXPECT_EQ(holder().foreign, "symfony");
  EXPECT_TRUE(holder().endless);
  Waiting waiting(bare(), request("job"));
  ASSERT_TRUE(is_waited_for());
  Monitor monitor(*server);
  EXPECT_FALSE(waiting.done(500));
  EXPECT_LT(monitor.asked().size(), 10u);
  EXPECT_TRUE(break_lock(kToken));
  auto lease = waiting.lease();
  ASSERT_TRUE(lease);
  EXPECT_TRUE(release(*lease));
}

// --- what nobody should have put there

TEST_F(RedisForeign, AHugeHashOrZsetIsShownInPart) {
  for (const std::string& field : {"'" + kClient + ":' .. i", std::string("'f' .. i")}) {
    server->command("DEL", "job");
    server->command("EVAL",
                    "redis.call('HSET', KEYS[1], 'mode', 'read')\n"
                    "for i = 1, 100000 do redis.call('HSET', KEYS[1], " +
                        field + ", i) end",
                    "1", "job");
    LockInfo info;
    const auto took = time_of([&] { info = inspect(*bare(), "job"); });
    EXPECT_LT(took, here(Millis{1'000}));
    RecordProperty("ms", static_cast<int>(took.count()));
    const bool redisson = field[1] == '8';
    EXPECT_EQ(info.holders.size(), redisson ? 1'000u : 1u);
    EXPECT_EQ(info.holders.at(0).foreign, redisson ? "redisson" : "unknown");
    EXPECT_EQ(info.mode, redisson ? Mode::shared : Mode::exclusive);
    EXPECT_EQ(code_of(try_once(*bare(), request("job"))), Errc::busy);
    EXPECT_EQ(break_lock(info.holders.at(0).owner.id), redisson);
    EXPECT_EQ(server->command("HLEN", "job"), redisson ? "100000" : "100001");
  }
  server->command("DEL", "job");
  server->command("EVAL", "for i = 1, 100000 do redis.call('ZADD', KEYS[1], i, 'm' .. i) end", "1",
                  "job");
  EXPECT_EQ(inspect(*bare(), "job").holders.size(), 1'000u);
  EXPECT_TRUE(break_lock("m1"));
  EXPECT_EQ(server->command("ZCARD", "job"), "99999");
}

TEST_F(RedisForeign, WhatIsTooLongToBeReadIsNot) {
  const std::string make = "local long = string.rep('x', 20000000)\n";
  for (const char* write :
       {"redis.call('SET', KEYS[1], long)", "redis.call('HSET', KEYS[1], 'mode', long, 'a', '1')",
        "redis.call('HSET', KEYS[1], long, '1')", "redis.call('HSET', KEYS[1], 'a', long)",
        "redis.call('ZADD', KEYS[1], 1, long)",
        "redis.call('SET', KEYS[1], 'x') redis.call('SET', '{job}:owner', long)"}) {
    server->command("FLUSHALL");
    server->command("EVAL", make + write, "1", "job");
    ASSERT_EQ(server->command("EXISTS", "job"), "1") << write;
    EXPECT_EQ(inspect(*bare(), "job").holders.size(), 1u) << write;
    EXPECT_EQ(holder().foreign, "unknown") << write;
  }
}

TEST_F(RedisForeign, ScoresMayBeAnything) {
  for (const char* score : {"inf", "-inf", "-1", "0.5", "1e12", "1e300", "9007199254740993"}) {
    server->command("DEL", "job");
    server->command("ZADD", "job", score, "member");
    server->command("PEXPIRE", "job", "50000");
    const LockInfo::Holder shown = holder();
    EXPECT_EQ(shown.owner.id, "member") << score;
    ASSERT_TRUE(shown.expires) << score;
    EXPECT_LE(*shown.expires, Millis{50'000}) << score;
    EXPECT_TRUE(break_lock("member")) << score;
    EXPECT_EQ(server->command("EXISTS", "job"), "0") << score;
  }
}

TEST_F(RedisForeign, ARecordOrAQueueOfAnotherTypeHidesNoLockAndSavesNone) {
  for (const std::string key : {"{job}:owner", "{job}:queue", "{job}:fence"}) {
    for (const Theirs& one : kTheirs) {
      for (const Words& odd :
           {Words{"RPUSH", key, "x"}, Words{"HSET", key, "f", "v"}, Words{"SET", key, "{}"}}) {
        server->command("FLUSHALL");
        server->run(odd);
        server->run(one.make);
        const LockInfo info = inspect(*bare(), "job");
        ASSERT_EQ(info.holders.size(), 1u) << key << ' ' << odd[0] << ' ' << one.id;
        EXPECT_EQ(info.holders[0].foreign, one.foreign) << key << ' ' << odd[0];
        EXPECT_EQ(info.holders[0].owner.id, one.id) << key << ' ' << odd[0];
        EXPECT_TRUE(break_lock(one.id)) << key << ' ' << odd[0] << ' ' << one.id;
        EXPECT_EQ(server->command("EXISTS", "job"), "0") << key << ' ' << odd[0] << ' ' << one.id;
      }
    }
  }
}

TEST_F(RedisForeign, AQueueOfAnotherTypeHidesNoLockOfOursAndSavesNone) {
  for (const Request& wanted : {request("job"), shared("job")}) {
    server->command("FLUSHALL");
    auto client = bare();
    auto lease = hold(*client, wanted);
    server->command("SET", "{job}:queue", "x");
    const LockInfo info = inspect(*bare(), "job");
    ASSERT_EQ(info.holders.size(), 1u);
    EXPECT_FALSE(info.holders[0].foreign);
    EXPECT_TRUE(break_lock(lease->owner_id()));
    const auto renewed = renew(*lease);
    EXPECT_EQ(renewed.error().code, Errc::lost);
    EXPECT_NE(renewed.error().message.find("test"), std::string::npos) << renewed.error().message;
    EXPECT_EQ(server->command("EXISTS", "job"), "0");
  }
}

TEST_F(RedisForeign, ARecordOfOursThatOutlivedItsLockNamesNobody) {
  auto client = bare();
  auto lease = hold(*client, request("job"));
  server->command("SET", "job", "theirs", "PX", "60000");
  EXPECT_EQ(holder().foreign, "unknown");
  EXPECT_FALSE(break_lock(lease->owner_id()));
  EXPECT_EQ(server->command("GET", "job"), "theirs");
  EXPECT_TRUE(break_lock("theirs"));
  EXPECT_EQ(server->command("EXISTS", "job", "{job}:owner"), "0");
  EXPECT_EQ(renew(*lease).error().code, Errc::lost);
}

}  // namespace
}  // namespace dlock::test
