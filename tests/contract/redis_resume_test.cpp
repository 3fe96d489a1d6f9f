// A lease that one process has let go and another picks up, on one Redis server.
#include <gtest/gtest.h>

#include "redis_fixture.hpp"

namespace dlock::test {
namespace {

class RedisResume : public RedisTest {
 protected:
  std::string let_go(const Request& wanted) const {
    const auto backend = client();
    const auto lease = hold(*backend, wanted);
    return lease ? lease->owner_id() : "";
  }
  Millis held() const {
    const LockInfo lock = inspect(*b, "job");
    EXPECT_EQ(lock.holders.size(), 1u);
    return lock.holders.empty() ? Millis{-1} : lock.holders[0].held.value_or(Millis{-1});
  }
};

TEST_F(RedisResume, HowLongItWasHeldGoesOn) {
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 2)}) {
    const std::string id = let_go(unkept(wanted));
    Millis least{500};
    util::wait_readable(-1, after(Clock::now(), least));
    EXPECT_GE(held(), least);
    for (const Millis ttl : {Millis{600'000}, Millis{20'000}, Millis{200'000}}) {
      const auto lease = pick_up(*client(), id, ttl);
      ASSERT_TRUE(lease && renew(*lease));
      EXPECT_GE(held(), least);
      EXPECT_LT(held(), here(least + Millis{3'000}));
      least = held();
    }
    const auto lease = pick_up(*b, id);
    EXPECT_TRUE(lease && release(*lease));
  }
}

// Its waiters slept until it would have ended by its first ttl.
TEST_F(RedisResume, AfterARenewalToLessItIsGrantedWhenThatIsOver) {
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 1)}) {
    SCOPED_TRACE(mode_name(wanted.mode));
    const std::string id = let_go(unkept(wanted));
    Waiting first(client(), rival_of(wanted));
    Waiting second(client(), rival_of(wanted));
    ASSERT_TRUE(first.blocked() && second.blocked() && waiters_are(2));
    const auto lease = pick_up(*b, id, Millis{2'000});
    ASSERT_TRUE(lease && renew(*lease));
    EXPECT_FALSE(first.done(500));
    EXPECT_FALSE(second.done(500));
    EXPECT_EQ(server->command("EXISTS", "dlock:job"), "1");
    const auto took =
        time_of([&] { EXPECT_TRUE(eventually([&] { return first.done(0) || second.done(0); })); });
    EXPECT_LT(took, here(Millis{3'000}));
    const bool was_first = first.done(0);
    EXPECT_TRUE(release(*(was_first ? first : second).lease()));
    EXPECT_TRUE(release(*(was_first ? second : first).lease()));
  }
}

TEST_F(RedisResume, WhatIsNotOursIsRefused) {
  server->command("SET", "dlock:job", "somebody", "PX", "60000");
  EXPECT_EQ(code_of(resume(*a, "somebody")), Errc::invalid);
  server->command("FLUSHALL");
  const std::string id = let_go(unkept(request("job")));
  server->command("DEL", redis::names_of(redis::kDefaultPrefix, "job").owner);
  EXPECT_EQ(code_of(resume(*a, id)), Errc::invalid);
}

TEST_F(RedisResume, AServerOutOfMemoryKeepsAndFreesIt) {
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 2)}) {
    const std::string id = let_go(unkept(wanted));
    server->command("CONFIG", "SET", "maxmemory", "1");
    const auto lease = pick_up(*b, id);
    ASSERT_TRUE(lease);
    const auto renewed = renew(*lease);
    EXPECT_TRUE(renewed) << renewed.error().message;
    EXPECT_GT(inspect(*a, "job").holders.at(0).expires, Millis{300'000});
    const auto again = pick_up(*a, id);
    EXPECT_TRUE(again && release(*again));
    EXPECT_EQ(release(*lease).error().code, Errc::lost);
    EXPECT_EQ(server->command("EXISTS", "dlock:job"), "0");
    server->command("CONFIG", "SET", "maxmemory", "0");
  }
}

TEST_F(RedisResume, AReplicaCannotTell) {
  const std::string id = let_go(unkept(request("job")));
  server->command("REPLICAOF", "127.0.0.1", "1");
  const auto lease = pick_up(*b, id);
  ASSERT_TRUE(lease);
  EXPECT_EQ(renew(*lease).error().code, Errc::unreachable);
  EXPECT_EQ(release(*lease).error().code, Errc::unreachable);
  server->command("REPLICAOF", "NO", "ONE");
  EXPECT_TRUE(renew(*lease));
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(only_the_counter_is_left());
}

}  // namespace
}  // namespace dlock::test
