// Servers in trouble, and what operators do to them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "redis_fixture.hpp"

namespace dlock::test {
namespace {

class RedisTrouble : public RedisTest {
 protected:
  static std::string message_of(const LeaseResult& result) {
    return result ? "granted" : result.error().message;
  }
  /// Why a lock is not to be had.
  std::string refusal() {
    const auto lease = try_once(*hasty(), request("other"));
    EXPECT_EQ(code_of(lease), Errc::unreachable);
    return message_of(lease);
  }
};

#define EXPECT_SAYS(text, what) EXPECT_NE((text).find(what), std::string::npos) << (text)

// --- the process

TEST_F(RedisTrouble, AServerThatIsStoppedAndGoesOnLosesNothing) {
  auto lease = hold(*a, request("job"));
  server->pause();
  EXPECT_LT(
      time_of([&] { EXPECT_EQ(lease->renew(in(150), Cancel()).error().code, Errc::unreachable); }),
      Millis{3'000});
  server->resume();
  EXPECT_TRUE(renew(*lease));
  EXPECT_TRUE(release(*lease));
}

TEST_F(RedisTrouble, AServerThatComesBackEmptyHasLostTheLock) {
  auto lease = hold(*a, request("job"));
  server->kill();
  EXPECT_EQ(renew(*lease).error().code, Errc::unreachable);
  server->start_again();
  const auto renewed = renew(*lease);
  ASSERT_FALSE(renewed);
  EXPECT_EQ(renewed.error().code, Errc::lost);
  EXPECT_SAYS(renewed.error().message, "lost its data");
  EXPECT_EQ(server->command("KEYS", "*"), "");
}

TEST_F(RedisTrouble, AServerThatComesBackWithItsDataStillHasTheLock) {
  start({.settings = {"appendonly yes", "appendfsync always"}});
  auto one = hold(*a, request("job"));
  auto two = hold(*a, shared("read"));
  const auto fence = one->fence();
  server->kill();
  server->start_again();
  EXPECT_TRUE(renew(*one));
  EXPECT_TRUE(renew(*two));
  EXPECT_TRUE(release(*one));
  EXPECT_GT(hold(*b, request("job"))->fence(), fence);
}

TEST_F(RedisTrouble, AWaiterOutlivesARestart) {
  auto lease = hold(*a, request("job"));
  Waiting waiting(client(), request("job"));
  ASSERT_TRUE(waiters_are(1));
  server->kill();
  server->start_again();
  auto next = waiting.lease();
  ASSERT_TRUE(next);
  EXPECT_TRUE(renew(*next));
  EXPECT_EQ(renew(*lease).error().code, Errc::lost);
  EXPECT_TRUE(renew(*next));
}

TEST_F(RedisTrouble, AServerThatIsLoadingIsWaitedFor) {
  start({.settings = {"enable-debug-command yes"}});
  server->command("DEBUG", "POPULATE", "2000", "filler", "100");
  server->command("CONFIG", "SET", "key-load-delay", "500");
  server->command("CONFIG", "SET", "loading-process-events-interval-bytes", "1024");
  std::thread loading([&] { server->command("DEBUG", "RELOAD"); });
  const bool seen = eventually([&] { return server->command("PING").starts_with("LOADING"); });
  const auto impatient = hasty(100)->inspect("job", in(100));
  auto lease = hold(*a, request("job"));
  loading.join();
  ASSERT_TRUE(seen);
  ASSERT_FALSE(impatient);
  EXPECT_SAYS(impatient.error().message, "still loading");
  EXPECT_TRUE(lease);
}

// --- data that is changed behind our back

TEST_F(RedisTrouble, AFlushedLockIsLostAndItsWaitersGetItAtTheLatestWhenItWouldHaveExpired) {
  auto lease = hold(*a, request("job", Mode::exclusive, 1, Millis{800}));
  Waiting one(client(), request("job"));
  ASSERT_TRUE(waiters_are(1));
  Waiting two(client(), request("job"));
  ASSERT_TRUE(waiters_are(2));
  server->command("FLUSHALL");
  EXPECT_EQ(renew(*lease).error().code, Errc::lost);
  ASSERT_TRUE(eventually([&] { return one.done(0) || two.done(0); }));
  Waiting& first = one.done(0) ? one : two;
  lease = first.lease();
  ASSERT_TRUE(lease);
  ASSERT_TRUE(waiters_are(1));
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE((&first == &one ? two : one).lease());
}

TEST_F(RedisTrouble, ADeletedLockIsLostAndNotMadeAgain) {
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 2)}) {
    auto lease = hold(*a, wanted);
    server->command("DEL", "dlock:job");
    EXPECT_EQ(renew(*lease).error().code, Errc::lost);
    EXPECT_EQ(release(*lease).error().code, Errc::lost);
    EXPECT_EQ(server->command("EXISTS", "dlock:job"), "0");
    EXPECT_TRUE(is_free_for(*b, wanted));
  }
}

// What an operator does who has only redis-cli.  At the next renewal it would be up to ttl/3 late,
// and the next one runs already.
TEST_F(RedisTrouble, AHolderHearsAtOnceOfALockThatIsDeletedByHand) {
  for (const char* how : {"DEL", "UNLINK", "FLUSHALL", "SET", "RENAME"}) {
    SCOPED_TRACE(how);
    auto lease = hold(*a, request("job"));
    ASSERT_TRUE(lease);
    const int events = listen_to(*lease);
    ASSERT_TRUE(renew(*lease));
    // Nobody else's doings are news, once a waiter has come, and its own are none either.
    const auto is_quiet_after_a_renewal = [&](int ms) {
      return eventually([&] { return renew(*lease) && !util::wait_readable(events, in(ms)); });
    };
    Waiting waiting(client(), request("job"));
    ASSERT_TRUE(waiters_are(1));
    EXPECT_TRUE(is_quiet_after_a_renewal(300));
    waiting.cancel();
    (void)waiting.result();
    // Also after it had to connect again.
    server->command("CLIENT", "KILL", "TYPE", "normal");
    EXPECT_TRUE(is_quiet_after_a_renewal(100));
    if (how == std::string("SET")) {
      server->command("SET", "dlock:job", "other");
    } else if (how == std::string("RENAME")) {
      server->command("RENAME", "dlock:job", "elsewhere");
    } else if (how == std::string("FLUSHALL")) {
      server->command("FLUSHALL");
    } else {
      server->command(how, "dlock:job");
    }
    EXPECT_TRUE(util::wait_readable(events, in(5'000)));
    EXPECT_EQ(renew(*lease).error().code, Errc::lost);
    server->command("FLUSHALL");
  }
}

TEST_F(RedisTrouble, AnOverwrittenLockIsLostAndLeftAlone) {
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 2)}) {
    auto lease = hold(*a, wanted);
    server->command("SET", "dlock:job", "other", "PX", "60000");
    const auto renewed = renew(*lease);
    ASSERT_FALSE(renewed);
    EXPECT_EQ(renewed.error().code, Errc::lost);
    EXPECT_SAYS(renewed.error().message, "somebody else");
    EXPECT_EQ(release(*lease).error().code, Errc::lost);
    EXPECT_EQ(server->command("GET", "dlock:job"), "other");
    EXPECT_GT(std::stol(server->command("PTTL", "dlock:job")), 31'000);
    EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
    server->command("FLUSHALL");
  }
}

TEST_F(RedisTrouble, AnEndlessLockIsShownAsSuchAndHasItsTtlAgainOnceRenewed) {
  auto lease = hold(*a, request("job"));
  server->command("PERSIST", "dlock:job");
  LockInfo info = inspect(*b, "job");
  ASSERT_EQ(info.holders.size(), 1u);
  EXPECT_FALSE(info.holders[0].expires);
  EXPECT_FALSE(info.holders[0].foreign);
  EXPECT_TRUE(renew(*lease));
  info = inspect(*b, "job");
  ASSERT_TRUE(info.holders.at(0).expires);
  EXPECT_LE(*info.holders[0].expires, Millis{30'000});
  EXPECT_TRUE(release(*lease));
  lease = hold(*a, shared("job"));
  server->command("PERSIST", "dlock:job");
  EXPECT_TRUE(renew(*lease));
  EXPECT_GT(std::stol(server->command("PTTL", "dlock:job")), 0);
}

TEST_F(RedisTrouble, ARenamedLockIsLost) {
  auto lease = hold(*a, request("job"));
  server->command("RENAME", "dlock:job", "dlock:elsewhere");
  EXPECT_EQ(renew(*lease).error().code, Errc::lost);
  EXPECT_EQ(release(*lease).error().code, Errc::lost);
  EXPECT_EQ(server->command("EXISTS", "dlock:elsewhere"), "1");
}

// --- refusals

TEST_F(RedisTrouble, AServerOutOfMemoryGrantsNothingButKeepsAndFreesWhatIsHeld) {
  auto one = hold(*a, request("job"));
  auto two = hold(*a, shared("read"));
  auto three = hold(*a, slots("slot", 2));
  server->command("CONFIG", "SET", "maxmemory", "1");
  EXPECT_SAYS(refusal(), "out of memory (maxmemory)");
  for (Lease* lease : {one.get(), two.get(), three.get()}) {
    const auto renewed = renew(*lease);
    EXPECT_TRUE(renewed) << renewed.error().message;
    EXPECT_TRUE(release(*lease));
  }
  EXPECT_EQ(server->command("EXISTS", "dlock:job", "dlock:read", "dlock:slot"), "0");
}

TEST_F(RedisTrouble, AReplicaIsNamedAsOne) {
  auto lease = hold(*a, request("job"));
  server->command("REPLICAOF", "127.0.0.1", "1");
  EXPECT_SAYS(refusal(), "is a replica; name its master");
  EXPECT_EQ(renew(*lease).error().code, Errc::unreachable);
  EXPECT_EQ(release(*lease).error().code, Errc::unreachable);
  server->command("REPLICAOF", "NO", "ONE");
  EXPECT_TRUE(renew(*lease));
}

// A name that leads to another server after a failover: the old one still answers, as a replica.
TEST_F(RedisTrouble, AFailoverBehindANameIsFollowed) {
  for (const bool detached : {false, true}) {
    SCOPED_TRACE(detached ? "the replica serves no stale data" : "a replica");
    RedisServer second;
    Proxy name("127.0.0.1", server->port());
    server->command("CONFIG", "SET", "repl-diskless-sync-delay", "0");
    second.command("REPLICAOF", "127.0.0.1", std::to_string(server->port()));
    auto lease =
        hold(*connect_redis(name.port()), request("job", Mode::exclusive, 1, Millis{4'000}));
    Waiting waiting(connect_redis(name.port()), request("job"));
    ASSERT_TRUE(waiters_are(1));
    ASSERT_TRUE(eventually([&] { return second.command("EXISTS", "dlock:job") == "1"; }));
    second.command("REPLICAOF", "NO", "ONE");
    if (detached) server->command("CONFIG", "SET", "replica-serve-stale-data", "no");
    server->command("REPLICAOF", "127.0.0.1", detached ? "1" : std::to_string(second.port()));
    name.forward_to(second.port());
    lease.reset();  // it is killed
    lease = waiting.lease();
    ASSERT_TRUE(lease);
    EXPECT_EQ(second.command("GET", "dlock:job"), lease->owner_id());
    const auto renewed = renew(*lease);
    EXPECT_TRUE(renewed) << renewed.error().message;
    // The next waiter is called there, too.
    Waiting next(connect_redis(name.port()), request("job"));
    ASSERT_TRUE(next.blocked());
    ASSERT_TRUE(eventually(
        [&] { return second.command("EXISTS", redis::names_of("dlock:", "job").queue) == "1"; }));
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(next.lease());
    start();
  }
}

// The same for a holder, whose lock has gone with it to the new master.
TEST_F(RedisTrouble, AHolderFollowsAFailoverBehindAName) {
  RedisServer second;
  Proxy name("127.0.0.1", server->port());
  server->command("CONFIG", "SET", "repl-diskless-sync-delay", "0");
  second.command("REPLICAOF", "127.0.0.1", std::to_string(server->port()));
  auto client = connect_redis(name.port());
  auto lease = hold(*client, request("job"));
  ASSERT_TRUE(lease);
  ASSERT_TRUE(eventually([&] { return second.command("EXISTS", "dlock:job") == "1"; }));
  second.command("REPLICAOF", "NO", "ONE");
  server->command("REPLICAOF", "127.0.0.1", std::to_string(second.port()));
  name.forward_to(second.port());
  EXPECT_FALSE(renew(*lease));
  EXPECT_TRUE(renew(*lease));
  EXPECT_TRUE(release(*lease));
  EXPECT_EQ(second.command("EXISTS", "dlock:job"), "0");
}

TEST_F(RedisTrouble, AServerThatCannotSaveIsNamedAsOne) {
  auto lease = hold(*a, request("job"));
  const std::string dir = server->command("CONFIG", "GET", "dir").substr(4);
  ASSERT_EQ(::mkdir((dir + "/dump.rdb").c_str(), 0700), 0) << dir;
  server->command("CONFIG", "SET", "save", "3600 100000");
  server->command("BGSAVE");
  const auto failed = [&] {
    return server->command("INFO", "persistence").find("rdb_last_bgsave_status:err") !=
           std::string::npos;
  };
  ASSERT_TRUE(eventually(failed));
  EXPECT_SAYS(refusal(), "cannot save its data");
  EXPECT_EQ(renew(*lease).error().code, Errc::unreachable);
  const auto released = release(*lease);
  ASSERT_FALSE(released);
  EXPECT_EQ(released.error().code, Errc::unreachable);
  EXPECT_SAYS(released.error().message, "cannot save its data");
  server->command("CONFIG", "SET", "stop-writes-on-bgsave-error", "no");
  EXPECT_TRUE(renew(*lease));
}

TEST_F(RedisTrouble, AServerWithTooFewReplicasIsNamedAsOne) {
  server->command("CONFIG", "SET", "min-replicas-to-write", "1");
  EXPECT_SAYS(refusal(), "too few replicas");
}

TEST_F(RedisTrouble, AServerThatIsFullOfClientsIsWaitedForAndThenNamed) {
  auto lease = hold(*a, request("job"));
  server->command("CONFIG", "SET", "maxclients", "1");
  // It closes the connection at once: what it says before that is not always heard.
  EXPECT_TRUE(eventually([&] { return refusal().find("too many clients") != std::string::npos; }));
  EXPECT_TRUE(renew(*lease));
  Waiting waiting(client(), request("other"));
  lease.reset();
  a.reset();
  EXPECT_TRUE(waiting.lease());
}

TEST_F(RedisTrouble, APausedServerIsWaitedForAndARenewalGivesUpInTime) {
  auto lease = hold(*a, request("job"));
  server->command("CLIENT", "PAUSE", "700", "WRITE");
  EXPECT_EQ(lease->renew(in(100), Cancel()).error().code, Errc::unreachable);
  EXPECT_TRUE(try_once(*b, request("other")));
  EXPECT_TRUE(renew(*lease));
}

TEST_F(RedisTrouble, AServerBusyWithAScriptIsWaitedForAndNotMeddledWith) {
  server->command("CONFIG", "SET", "busy-reply-threshold", "10");
  std::thread busy([&] {
    server->command("EVAL",
                    "local t = redis.call('TIME')[1] + 3; while t + 0 > "
                    "redis.call('TIME')[1] + 0 do end return 'done'",
                    "0");
  });
  const bool seen = eventually([&] { return server->command("PING").starts_with("BUSY"); });
  std::string refused;
  EXPECT_TRUE(eventually([&] {
    refused = refusal();
    return refused.find("no answer within") == std::string::npos;
  }));
  EXPECT_TRUE(hold(*a, request("job")));
  busy.join();
  EXPECT_TRUE(seen);
  EXPECT_SAYS(refused, "busy with a script");
}

// --- the clock of the server

TEST_F(RedisTrouble, AClockThatJumpsForwardEndsTheLock) {
  const FakeClock clock;
  start({.clock = &clock});
  auto one = hold(*a, request("job"));
  auto two = hold(*a, shared("read"));
  const_cast<FakeClock&>(clock).jump(Millis{60'000});
  EXPECT_EQ(renew(*one).error().code, Errc::lost);
  EXPECT_EQ(renew(*two).error().code, Errc::lost);
  EXPECT_TRUE(is_free_for(*b, request("job")));
  EXPECT_TRUE(is_free_for(*b, request("read")));
  server.reset();
}

TEST_F(RedisTrouble, AClockThatJumpsBackIsSeenInTheExpiryAndTheLockCanBeBroken) {
  FakeClock clock;
  start({.clock = &clock});
  for (const Request& held : {request("job"), shared("job")}) {
    auto lease = hold(*a, held);
    clock.jump(Millis{-3'600'000});
    const LockInfo info = inspect(*b, "job");
    ASSERT_EQ(info.holders.size(), 1u);
    ASSERT_TRUE(info.holders[0].expires);
    EXPECT_GT(*info.holders[0].expires, Millis{3'600'000});
    ASSERT_TRUE(info.holders[0].held);
    EXPECT_GE(*info.holders[0].held, Millis{0});
    EXPECT_TRUE(renew(*lease));
    EXPECT_LT(*inspect(*b, "job").holders.at(0).expires, Millis{31'000});
    EXPECT_TRUE(*b->force_release("job", lease->owner_id(), {"test"}, soon()));
    EXPECT_TRUE(is_free_for(*b, request("job")));
  }
  server.reset();
}

}  // namespace
}  // namespace dlock::test
