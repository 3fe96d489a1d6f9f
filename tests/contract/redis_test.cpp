// What the Redis backend asks of the server, and in which words.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "redis_fixture.hpp"

namespace dlock::test {
namespace {

using RedisTraffic = RedisTest;
using Commands = std::vector<std::string>;

TEST_F(RedisTraffic, AcquireRenewAndReleaseAreOneRequestEachOverOneConnection) {
  teach_scripts();
  Monitor monitor(*server);
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 3)}) {
    auto fresh = client();
    auto lease = hold(*fresh, wanted);
    EXPECT_TRUE(renew(*lease));
    EXPECT_TRUE(release(*lease));
    std::set<std::string> clients;
    Commands commands;
    for (const auto& asked : monitor.asked()) {
      clients.insert(asked.client);
      commands.push_back(asked.command);
    }
    EXPECT_EQ(commands, (Commands{"EVALSHA", "EVALSHA", "EVALSHA"}));
    EXPECT_EQ(clients.size(), 1u);
  }
}

TEST_F(RedisTraffic, AScriptIsSentOnceAndAgainAfterAFlush) {
  Monitor monitor(*server);
  auto lease = hold(*a, request("job"));
  EXPECT_EQ(monitor.commands(), (Commands{"EVALSHA", "EVAL"}));
  EXPECT_TRUE(release(*lease));
  monitor.asked();
  lease = hold(*b, request("job"));
  EXPECT_EQ(monitor.commands(), Commands{"EVALSHA"});
  server->command("SCRIPT", "FLUSH");
  EXPECT_TRUE(renew(*lease));
  EXPECT_EQ(monitor.commands(), (Commands{"EVALSHA", "EVAL"}));
  server->command("SCRIPT", "FLUSH");
  EXPECT_EQ(b->list("", soon()).value().size(), 1u);
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(only_the_counter_is_left());
}

TEST_F(RedisTraffic, ABusyLockCostsATryTwoRequests) {
  teach_scripts();
  auto lease = hold(*a, request("job"));
  Monitor monitor(*server);
  EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
  EXPECT_LE(monitor.asked().size(), 2u);
}

TEST_F(RedisTraffic, AWaiterSendsNothingWhileItWaits) {
  auto lease = hold(*a, request("job"));
  Waiting one(client(), request("job"));
  Waiting two(client(), shared("job"));
  ASSERT_TRUE(waiters_are(2));
  ASSERT_TRUE(eventually([&] {  // they still look who holds it
    Monitor monitor(*server);
    std::this_thread::sleep_for(Millis{100});
    return monitor.commands().empty();
  }));
  Monitor monitor(*server);
  std::this_thread::sleep_for(Millis{1'000});  // nothing must happen, and nothing tells of that
  EXPECT_EQ(monitor.commands(), Commands{});
}

TEST_F(RedisTraffic, AHandOverCostsTheSameHoweverManyWait) {
  teach_scripts();
  auto lease = hold(*a, request("job"));
  std::vector<std::unique_ptr<Waiting>> waiting;
  for (int i = 0; i < 50; ++i) {
    waiting.push_back(std::make_unique<Waiting>(client(), request("job")));
  }
  ASSERT_TRUE(waiters_are(50));
  Monitor monitor(*server);
  EXPECT_TRUE(release(*lease));
  const auto served = [&] {
    return std::count_if(waiting.begin(), waiting.end(), [](auto& one) { return one->done(0); });
  };
  ASSERT_TRUE(eventually([&] { return served() == 1; }));
  std::this_thread::sleep_for(Millis{800});  // also the look of the one behind, in 500 ms
  EXPECT_LE(monitor.asked().size(), 12u);
  EXPECT_EQ(served(), 1);
  for (auto& one : waiting) one->cancel();
}

TEST_F(RedisTraffic, AShortJobHasNoSecondConnectionAndALongOneHears) {
  const Request wanted = request("job");
  auto lease = hold(*a, wanted);
  EXPECT_EQ(server->command("PUBSUB", "CHANNELS", "*"), "");
  const int events = listen_to(*lease);
  const auto names = redis::names_of(redis::kDefaultPrefix, "job");
  EXPECT_NE(server->command("PUBSUB", "CHANNELS", "*").find(wanted.owner.id), std::string::npos);
  EXPECT_FALSE(util::wait_readable(events, Deadline{}));
  EXPECT_TRUE(*b->force_release("job", lease->owner_id(), {"test"}, soon()));
  EXPECT_TRUE(util::wait_readable(events, soon()));
}

TEST_F(RedisTraffic, AHolderThatWaitedIsNotWokenByItsOwnRenewals) {
  for (const std::string blocker : {"ours", "foreign"}) {
    std::unique_ptr<Lease> before;
    if (blocker == "ours") {
      before = hold(*a, request("job"));
    } else {
      server->command("SET", "dlock:job", "somebody", "PX", "60000");
    }
    Waiting waiting(client(), request("job"));
    ASSERT_TRUE(waiters_are(1));
    if (before) {
      EXPECT_TRUE(release(*before));
    } else {
      server->command("DEL", "dlock:job");
    }
    auto lease = waiting.lease();
    ASSERT_TRUE(lease);
    const int events = listen_to(*lease);
    EXPECT_TRUE(renew(*lease));
    EXPECT_FALSE(util::wait_readable(events, in(200))) << blocker;
    EXPECT_TRUE(release(*lease));
  }
}

// The server tells the holder of each key that its renewal names, and the queue is one of them.
TEST_F(RedisTraffic, WhoComesToTheQueueIsNoNewsToTheHolder) {
  auto lease = hold(*a, request("job"));
  const int events = listen_to(*lease);
  Waiting waiting(client(), request("job"));
  ASSERT_TRUE(waiters_are(1));
  while (util::wait_readable(events, in(200))) EXPECT_FALSE(lease->has_news());
  server->command("DEL", "dlock:job");
  ASSERT_TRUE(util::wait_readable(events, soon()));
  EXPECT_TRUE(lease->has_news());
  EXPECT_EQ(renew(*lease).error().code, Errc::lost);
  lease = waiting.lease();
  ASSERT_TRUE(lease);
  EXPECT_TRUE(release(*lease));
}

TEST_F(RedisTraffic, AHolderWhoseSubscriptionWasCutHearsAgainAfterOneRenewal) {
  auto lease = hold(*a, request("job"));
  const int events = listen_to(*lease);
  server->command("CLIENT", "KILL", "TYPE", "pubsub");
  ASSERT_TRUE(util::wait_readable(events, soon()));
  EXPECT_TRUE(lease->has_news());
  EXPECT_TRUE(renew(*lease));
  server->command("DEL", "dlock:job");
  EXPECT_TRUE(util::wait_readable(events, soon()) && lease->has_news());
  EXPECT_EQ(renew(*lease).error().code, Errc::lost);
}

class RedisRights : public RedisTest {
 protected:
  void give(const std::vector<std::string>& rights) {
    std::vector<std::string> words{"ACL", "SETUSER", "dlock"};
    words.insert(words.end(), rights.begin(), rights.end());
    EXPECT_EQ(server->run(words), "OK");
  }
  std::unique_ptr<Backend> as_user(const std::string& password = "pw") const {
    return connect_redis(server->port(), {}, Millis{5'000}, "dlock:" + password + "@");
  }
};

TEST_F(RedisRights, ALittleIsEnoughForEverything) {
  give({kRights.begin(), kRights.end()});
  server->command("ACL", "LOG", "RESET");
  auto user = as_user();
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 1)}) {
    auto lease = hold(*user, wanted);
    ASSERT_TRUE(lease);
    Waiting waiting(as_user(), rival_of(wanted));
    ASSERT_TRUE(waiters_are(1));
    EXPECT_EQ(user->list("", soon()).value().size(), 1u);
    EXPECT_GE(listen_to(*lease), 0);
    EXPECT_TRUE(release(*lease));
    lease = waiting.lease();
    ASSERT_TRUE(lease);
    const std::string id = inspect(*user, "job").holders.at(0).owner.id;
    EXPECT_TRUE(*user->force_release("job", id, {"test"}, soon()));
    EXPECT_EQ(renew(*lease).error().code, Errc::lost);
  }
  auto one = hold(*user, shared("job"));
  auto dead = hold(*user, request("job", Mode::shared, 1, Millis{100}));
  auto three = hold(*user, shared("job"));
  EXPECT_TRUE(release(*three));
  EXPECT_TRUE(eventually([&] { return inspect(*user, "job").holders.size() == 1; }));
  EXPECT_TRUE(release(*one));
  for (const bool by_force : {false, true}) {
    server->command("HSET", "dlock:job", "u:1", "1");
    Waiting waiting(as_user(), request("job"));
    ASSERT_TRUE(waiters_are(1));
    if (by_force) {
      EXPECT_TRUE(*user->force_release("job", "u:1", {"test"}, soon()));
    } else {
      server->command("DEL", "dlock:job");
    }
    auto lease = waiting.lease();
    ASSERT_TRUE(lease);
    EXPECT_TRUE(release(*lease));
  }
  EXPECT_EQ(server->command("ACL", "LOG"), "");
}

TEST_F(RedisRights, WhatIsMissingIsNamedAndThePasswordIsNot) {
  give({"on", ">s3cret", "~*", "&*", "+@all", "-evalsha", "-eval"});
  auto lease = try_once(*as_user("s3cret"), request("job"));
  ASSERT_EQ(code_of(lease), Errc::denied);
  EXPECT_NE(lease.error().message.find("'eval'"), std::string::npos) << lease.error().message;
  give({"+@all", "-pexpire", "-incr", "-set"});
  lease = try_once(*as_user("s3cret"), request("job"));
  ASSERT_EQ(code_of(lease), Errc::denied) << lease.error().message;
  give({"+@all", "resetkeys", "~other:*"});
  lease = try_once(*as_user("s3cret"), request("job"));
  ASSERT_EQ(code_of(lease), Errc::denied) << lease.error().message;
  lease = try_once(*as_user("wr0ng"), request("job"));
  ASSERT_EQ(code_of(lease), Errc::denied);
  EXPECT_EQ(lease.error().message.find("wr0ng"), std::string::npos) << lease.error().message;
  EXPECT_EQ(server->command("KEYS", "*"), "");
}

TEST_F(RedisRights, WithoutTheChannelsItLocksAndOnlyWaitingIsRefused) {
  give({"on", ">pw", "~*", "+@all", "resetchannels"});
  auto user = as_user();
  auto lease = hold(*user, request("job"));
  ASSERT_TRUE(lease);
  EXPECT_TRUE(renew(*lease));
  auto waiting = as_user()->acquire(request("job"), {.until = soon()});
  ASSERT_EQ(code_of(waiting), Errc::denied);
  EXPECT_NE(waiting.error().message.find("channel"), std::string::npos) << waiting.error().message;
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(only_the_counter_is_left());
}

}  // namespace
}  // namespace dlock::test
