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
};

TEST_F(RedisForeign, WhatWeHoldIsHeldForOthersAndWhatTheyHoldForUs) {
  auto client = bare();
  auto lease = hold(*client, request("job"));
  EXPECT_EQ(server->command("SET", "job", "other", "NX", "PX", "5000"), "(nil)");
  EXPECT_EQ(server->command("GET", "job").size(), 32u);
  EXPECT_TRUE(release(*lease));
  EXPECT_EQ(server->command("SET", "job", "other", "NX", "PX", "60000"), "OK");
  expect_busy_for_all();
  EXPECT_EQ(server->command("GET", "job"), "other");
  EXPECT_GT(std::stol(server->command("PTTL", "job")), 40'000);
}

TEST_F(RedisForeign, AStringIsShownAsForeignWithWhatIsKnown) {
  server->command("SET", "job", "value of theirs", "PX", "60000");
  const LockInfo::Holder theirs = holder();
  EXPECT_EQ(theirs.foreign, "redis string");
  EXPECT_EQ(theirs.owner.id, "value of theirs");
  ASSERT_TRUE(theirs.expires);
  EXPECT_GT(*theirs.expires, Millis{40'000});
  server->command("SET", "job", "value of theirs");
  EXPECT_EQ(holder().foreign, "redis string that never expires");
  server->command("SET", "job", "ADDED:2026-01-01T00:00:00Z@host", "PX", "60000");
  EXPECT_EQ(holder().foreign, "shedlock");
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
    EXPECT_LT(took, Millis{1'000}) << how;
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
  EXPECT_LT(Clock::now(), over + Millis{1'000});
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
  EXPECT_LT(time_of([&] { EXPECT_TRUE(one.lease()); }), Millis{1'000});
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
    EXPECT_LT(time_of([&] { lease = waiting.lease(); }), Millis{2'500}) << kind;
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
    EXPECT_FALSE(*bare()->force_release("job", "somebody", "test", soon())) << maker[0];
    EXPECT_EQ(server->command("DUMP", "job"), before) << maker[0];
    EXPECT_TRUE(bare()->list("", soon()).value().empty());
  }
  server->command("FLUSHALL");
  server->run(makers[0]);
  EXPECT_EQ(holder().foreign, "redisson that never expires");
}

TEST_F(RedisForeign, ALockOfOthersCanBeBrokenByTheIdThatIsShown) {
  for (const std::vector<std::string>& maker : {std::vector<std::string>{"SET", "job", "theirs"},
                                                {"HSET", "job", "8743c9c0-0795:1", "1"},
                                                {"ZADD", "job", "1", "member"}}) {
    server->run(maker);
    Waiting waiting(bare(), request("job"));
    ASSERT_TRUE(is_waited_for());
    EXPECT_TRUE(*bare()->force_release("job", holder().owner.id, "test", soon())) << maker[0];
    std::unique_ptr<Lease> lease;
    EXPECT_LT(time_of([&] { lease = waiting.lease(); }), Millis{1'000}) << maker[0];
    ASSERT_TRUE(lease);
    EXPECT_TRUE(release(*lease));
  }
}

}  // namespace
}  // namespace dlock::test
