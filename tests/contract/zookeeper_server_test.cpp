// Servers that stop, end, forget, elect and refuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <sstream>

#include "zookeeper_fixture.hpp"

namespace dlock::test {
namespace {

constexpr Millis kBriefTtl{2'000};
Request brief(const std::string& key = "job") {
  return request(key, Mode::exclusive, 1, kBriefTtl);
}

using ZooKeeperServers = ZooKeeperTest;

// --- sessions

TEST_F(ZooKeeperServers, GrantsATimeoutThatIsNotWhatWasAskedFor) {
  start(ZooKeeperOptions{.settings = {"minSessionTimeout=1000", "maxSessionTimeout=2000"}});
  auto lease = hold(*a, request("job"));
  EXPECT_LE(lease->valid_until(), in(2'000));
  EXPECT_TRUE(renew(*lease));
  EXPECT_LE(lease->valid_until(), in(2'000));
  EXPECT_TRUE(release(*lease));
  const Deadline before = Clock::now();
  lease = hold(*a, request("job", Mode::exclusive, 1, Millis{200}));
  EXPECT_GT(lease->valid_until(), before + Millis{500});
}

TEST_F(ZooKeeperServers, ASessionThatTheServerEndedIsALossAtOnce) {
  auto lease = hold(*through_proxy(), request("job"));
  const int events = listen_to(*lease);
  end_session_of(children().at(0));
  const auto took = time_of([&] {
    while (util::wait_readable(events, soon())) {
      if (auto renewed = renew(*lease); !renewed && renewed.error().code == Errc::lost) break;
    }
  });
  EXPECT_LT(took, here(Millis{1'000}));
  const auto outcome = renew(*lease);
  ASSERT_EQ(code_of(outcome), Errc::lost);
  EXPECT_NE(outcome.error().message.find("expired"), std::string::npos) << outcome.error().message;
  EXPECT_EQ(code_of(release(*lease)), Errc::lost);
}

TEST_F(ZooKeeperServers, ANodeThatIsDeletedIsALossAtOnce) {
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 2)}) {
    auto lease = hold(*a, wanted);
    const int events = listen_to(*lease);
    EXPECT_FALSE(util::wait_readable(events, Deadline{}) && lease->has_news());
    nodes().remove("/dlock/job/" + children().at(0));
    EXPECT_LT(time_of([&] { EXPECT_TRUE(util::wait_readable(events, soon())); }),
              here(Millis{1'000}));
    const auto outcome = renew(*lease);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, Errc::lost);
    EXPECT_NE(outcome.error().message.find("deleted"), std::string::npos);
    EXPECT_EQ(children().size(), zookeeper_nodes_of(wanted) - 1);  // its number is kept so far
    EXPECT_EQ(code_of(release(*lease)), Errc::lost);
    EXPECT_TRUE(queue_is(0));
  }
}

TEST_F(ZooKeeperServers, ANodeThatIsDeletedBeforeTheKeeperStartsIsNews) {
  auto lease = hold(*a, request("job"));
  ASSERT_GE(lease->event_fd(), 0);
  const auto is_heard = [&] {
    while (util::wait_readable(lease->event_fd(), soon())) {
      if (lease->has_news()) return true;
    }
    return false;
  };
  nodes().remove("/dlock/job/" + children().at(0));
  EXPECT_TRUE(is_heard());
  EXPECT_EQ(code_of(renew(*lease)), Errc::lost);
}

TEST_F(ZooKeeperServers, ANodeThatIsMadeAnewUnderTheSameNameIsNotOurs) {
  auto lease = hold(*a, request("job"));
  const std::string path = "/dlock/job/" + children().at(0);
  ZooKeeperClient other(server->port());
  other.remove(path);
  other.create(path, "theirs", Znode::ephemeral);
  EXPECT_EQ(code_of(renew(*lease)), Errc::lost);
  EXPECT_EQ(code_of(release(*lease)), Errc::lost);
  EXPECT_TRUE(other.exists(path));
}

// --- a server that stops, and one that comes again

TEST_F(ZooKeeperServers, APausedServerLeavesTheLeaseUntilItsEndAndNotLonger) {
  auto lease = hold(*a, brief());
  EXPECT_TRUE(renew(*lease));
  server->pause();
  const Deadline paused = Clock::now();
  EXPECT_EQ(code_of(lease->renew(in(300), Cancel())), Errc::unreachable);
  EXPECT_LE(lease->valid_until(), paused + kBriefTtl);
  EXPECT_GT(lease->valid_until(), paused + kBriefTtl / 4);
  server->resume();
  EXPECT_TRUE(renew(*lease));
  EXPECT_TRUE(release(*lease));
}

TEST_F(ZooKeeperServers, ARestartedServerHasTheSessionsOfHoldersAndWaiters) {
  auto lease = hold(*a, request("job"));
  const auto fence = lease->fence();
  Waiting waiting(client(), request("job"));
  ASSERT_TRUE(queue_is(2));
  const auto before = children();
  server->start_again();
  EXPECT_TRUE(renew(*lease));
  EXPECT_EQ(lease->fence(), fence);
  EXPECT_EQ(children(), before);
  EXPECT_FALSE(waiting.done(50));
  EXPECT_TRUE(release(*lease));
  auto next = waiting.lease();
  ASSERT_TRUE(next);
  EXPECT_GT(next->fence(), fence);
  EXPECT_TRUE(release(*next));
  EXPECT_TRUE(children().empty());
}

// It tells a client that has seen more than it knows to go to another server, and nothing else.
TEST_F(ZooKeeperServers, AServerThatComesBackEmptyNeverRenews) {
  auto lease = hold(*a, brief());
  server->erase();
  server->start_again();
  const auto refused = lease->renew(lease->valid_until(), Cancel());
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().code == Errc::unreachable || refused.error().code == Errc::lost);
  EXPECT_TRUE(is_free_for(*client(), request("job")));
}

TEST_F(ZooKeeperServers, AServerThatIsGoneEndsEveryCallInTime) {
  auto hasty = client({.patience = Millis{500}});
  auto lease = hold(*hasty, brief());
  server->kill();
  const auto took = time_of([&] {
    EXPECT_EQ(code_of(lease->renew(in(300), Cancel())), Errc::unreachable);
    const auto outcome = try_once(*hasty, request("other"));
    EXPECT_EQ(code_of(outcome), Errc::unreachable);
    EXPECT_NE(outcome.error().message.find("connection refused"), std::string::npos)
        << outcome.error().message;
    EXPECT_EQ(hasty->inspect("job", in(300)).error().code, Errc::unreachable);
    EXPECT_EQ(code_of(lease->release(in(300), Cancel())), Errc::unreachable);
  });
  EXPECT_LT(took, here(Millis{5'000}));
}

TEST_F(ZooKeeperServers, OneThatTakesNoMoreConnectionsIsUnreachable) {
  start(ZooKeeperOptions{.settings = {"maxClientCnxns=1"}});
  ZooKeeperClient only(server->port());
  auto hasty = client({.patience = Millis{500}});
  LeaseResult outcome = Error{};
  EXPECT_LT(time_of([&] { outcome = try_once(*hasty, request("job")); }), here(Millis{3'000}));
  ASSERT_EQ(code_of(outcome), Errc::unreachable);
  EXPECT_NE(outcome.error().message.find("maxClientCnxns"), std::string::npos)
      << outcome.error().message;
}

// The connect timeout is shorter than the time for which the limit keeps a waiter out.
TEST_F(ZooKeeperServers, MoreWaitersThanConnectionsAllAcquireTheLock) {
  constexpr std::size_t kConnections = 3;
  constexpr std::size_t kWaiters = 7;
  start(ZooKeeperOptions{.settings = {"maxClientCnxns=" + std::to_string(kConnections)}});
  const auto hasty = [this] { return client({.patience = Millis{500}}); };
  // A server that has just started may need longer for its first transaction.
  auto lease = hold(*client(), request("job"));
  ASSERT_TRUE(lease);
  const int events = listen_to(*lease);
  std::list<Waiting> waiters;
  // The server checks the limit before it counts a connection: of many at once it takes too many.
  for (std::size_t i = 1; i < kConnections; ++i) {
    waiters.emplace_back(hasty(), request("job"));
    ASSERT_TRUE(waiters.back().blocked());
  }
  while (waiters.size() < kWaiters) waiters.emplace_back(hasty(), request("job"));
  // All connections are in use, for longer than the connect timeout.
  const Deadline full_until = in(1'500);
  while (Clock::now() < full_until) {
    if (!util::wait_readable(events, full_until)) break;
    ASSERT_TRUE(!lease->has_news() || renew(*lease).has_value());
  }
  EXPECT_TRUE(renew(*lease));
  for (Waiting& waiter : waiters) EXPECT_FALSE(waiter.done(0));
  std::uint64_t fence = 0;
  while (!waiters.empty()) {
    ASSERT_TRUE(lease);
    EXPECT_GT(*lease->fence(), fence);
    fence = *lease->fence();
    EXPECT_TRUE(release(*lease));
    auto next = waiters.end();
    EXPECT_TRUE(eventually([&] {
      next = std::find_if(waiters.begin(), waiters.end(), [](Waiting& w) { return w.done(0); });
      return next != waiters.end();
    }));
    ASSERT_NE(next, waiters.end());
    lease = next->lease();
    waiters.erase(next);
  }
  ASSERT_TRUE(lease);
  EXPECT_TRUE(release(*lease));
}

// The connection that the head of the queue gave up would go to somebody else.
TEST_F(ZooKeeperServers, AWaiterThatHasWaitedLongKeepsItsConnectionWhenItsTurnComes) {
  auto lease = hold(*a, request("job"));
  const long before = proxy->connections();
  Waiting waiting(through_proxy(), request("job", Mode::exclusive, 1, Millis{1'000}));
  ASSERT_TRUE(waiting.blocked());
  EXPECT_FALSE(waiting.done(1'500));
  const Deadline released = Clock::now();
  EXPECT_TRUE(release(*lease));
  lease = waiting.lease();
  ASSERT_TRUE(lease);
  EXPECT_EQ(proxy->connections() - before, 1);
  EXPECT_GT(lease->valid_until(), released + Millis{500});
  EXPECT_TRUE(release(*lease));
}

// Its syncs prove too little, whatever their number: it connects again.
TEST_F(ZooKeeperServers, AWaiterWhoseServerIsSlowAcquiresTheLockAllTheSame) {
  auto lease = hold(*a, request("job"));
  Waiting waiting(through_proxy(), request("job", Mode::exclusive, 1, Millis{1'000}));
  ASSERT_TRUE(waiting.blocked());
  EXPECT_FALSE(waiting.done(1'500));
  proxy->delay_replies(Millis{100});
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(waiting.done(10'000));
  lease = waiting.lease();
  ASSERT_TRUE(lease);
  EXPECT_TRUE(renew(*lease));
  EXPECT_TRUE(release(*lease));
}

// --- an ensemble

// One ensemble for all of them, which each repairs first.
class ZooKeeperThree : public ZooKeeperTest {
 protected:
  void SetUp() override {
    if (find_backend("zookeeper")->open == nullptr) GTEST_SKIP() << "built without zookeeper";
    if (!ZooKeeperServer::available()) GTEST_SKIP() << "zookeeper is not installed";
    if (three == nullptr) three = std::make_unique<ZooKeeperEnsemble>();
    three->repair();
    ASSERT_TRUE(eventually([] { return three->operator[](three->leader()).clear(); }));
    a = connect_zookeeper(three->url());
    b = connect_zookeeper(three->url());
  }
  static void TearDownTestSuite() { three.reset(); }
  static Request lasting() { return request("job", Mode::exclusive, 1, Millis{20'000}); }
  static inline std::unique_ptr<ZooKeeperEnsemble> three;
};

TEST_F(ZooKeeperThree, AnotherLeaderKeepsHolderAndQueue) {
  auto lease = hold(*a, lasting());
  const auto fence = lease->fence();
  Waiting one(connect_zookeeper(three->url()), lasting());
  ASSERT_TRUE(waiters_are(1));
  Waiting two(connect_zookeeper(three->url()), lasting());
  ASSERT_TRUE(waiters_are(2));
  three->operator[](three->leader()).kill();
  EXPECT_TRUE(eventually([&] { return renew(*lease).has_value(); }));
  EXPECT_FALSE(one.done(0) || two.done(0));
  EXPECT_TRUE(eventually([&] {
    auto info = b->inspect("job", in(2'000));
    return info && info->holders.size() == 1 && info->waiters->size() == 2;
  }));
  EXPECT_TRUE(eventually([&] { return release(*lease).has_value(); }));
  lease = one.lease();
  ASSERT_TRUE(lease);
  EXPECT_GT(lease->fence(), fence);
  EXPECT_FALSE(two.done(20));
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(two.lease());
}

TEST_F(ZooKeeperThree, ARollingRestartKeepsHolderAndWaiter) {
  auto lease = hold(*a, lasting());
  const auto fence = lease->fence();
  Waiting waiting(connect_zookeeper(three->url()), lasting());
  ASSERT_TRUE(waiters_are(1));
  for (std::size_t i = 0; i < three->size(); ++i) {
    three->operator[](i).kill();
    EXPECT_TRUE(eventually([&] { return renew(*lease).has_value(); }));
    three->operator[](i).start_again();
    EXPECT_TRUE(eventually([&] { return renew(*lease).has_value(); }));
  }
  EXPECT_FALSE(waiting.done(0));
  EXPECT_TRUE(waiters_are(1));
  EXPECT_TRUE(eventually([&] { return release(*lease).has_value(); }));
  lease = waiting.lease();
  ASSERT_TRUE(lease);
  EXPECT_GT(lease->fence(), fence);
  EXPECT_TRUE(release(*lease));
}

// The holder is connected to one server only, which falls silent.  The majority ends its session.
TEST_F(ZooKeeperThree, OnTheMinorityAHolderGivesUpBeforeTheMajorityGrantsTheLock) {
  const std::size_t leader = three->leader();
  ZooKeeperServer& minority = three->operator[]((leader + 1) % 3);
  const std::string majority =
      three->operator[](leader).url() + ',' + three->operator[]((leader + 2) % 3).address();
  auto isolated = connect_zookeeper(minority.url());
  auto lease = hold(*isolated, request("job", Mode::exclusive, 1, Millis{2'000}));
  ASSERT_TRUE(lease);
  const auto fence = lease->fence();
  Waiting waiting(connect_zookeeper(majority), lasting());
  ASSERT_TRUE(waiters_are(1));
  EXPECT_TRUE(renew(*lease));
  minority.pause();
  const Deadline paused = Clock::now();
  while (!waiting.done(0) && Clock::now() < paused + kPatience) {
    EXPECT_FALSE(lease->renew(in(20), Cancel()));
  }
  EXPECT_LE(lease->valid_until(), Clock::now()) << "OVERLAP";
  EXPECT_LE(lease->valid_until(), paused + Millis{2'000});
  auto next = waiting.lease();
  ASSERT_TRUE(next);
  EXPECT_GT(next->fence(), fence);
  minority.resume();
  EXPECT_TRUE(eventually([&] { return code_of(renew(*lease)) == Errc::lost; }));
  EXPECT_TRUE(renew(*next));
  EXPECT_TRUE(release(*next));
}

// It goes on to answer what needs no majority, for longer than the others need for an election.
TEST_F(ZooKeeperThree, ALeaderThatNobodyFollowsProvesNothing) {
  const std::size_t leader = three->leader();
  auto client = connect_zookeeper(three->operator[](leader).url());
  auto lease = hold(*client, lasting());
  ASSERT_TRUE(lease);
  EXPECT_TRUE(renew(*lease));
  for (const std::size_t follower : {leader + 1, leader + 2}) {
    three->operator[](follower % 3).pause();
  }
  const Deadline proven = Clock::now();
  EXPECT_FALSE(lease->renew(in(300), Cancel()));
  EXPECT_LT(lease->valid_until(), proven + *lease->granted_ttl());
  for (const std::size_t follower : {leader + 1, leader + 2}) {
    three->operator[](follower % 3).resume();
  }
  EXPECT_TRUE(eventually([&] { return renew(*lease).has_value(); }));
  EXPECT_TRUE(release(*lease));
}

TEST_F(ZooKeeperThree, WithoutAMajorityNothingIsGrantedAndNothingIsLost) {
  auto lease = hold(*a, lasting());
  const std::size_t left = three->leader();
  for (std::size_t i = 0; i < three->size(); ++i) {
    if (i != left) three->operator[](i).kill();
  }
  // The last one may answer from memory for a while; it proves nothing.
  EXPECT_TRUE(eventually([&] { return !lease->renew(in(500), Cancel()); }));
  const Deadline valid_until = lease->valid_until();
  EXPECT_EQ(code_of(lease->renew(in(500), Cancel())), Errc::unreachable);
  EXPECT_EQ(lease->valid_until(), valid_until);
  auto hasty = connect_zookeeper(three->url(), {.patience = Millis{700}});
  LeaseResult outcome = Error{};
  EXPECT_LT(time_of([&] { outcome = try_once(*hasty, request("job")); }), here(Millis{5'000}));
  EXPECT_EQ(code_of(outcome), Errc::unreachable);
  three->operator[]((left + 1) % 3).start_again();
  EXPECT_TRUE(eventually([&] { return renew(*lease).has_value(); }));
  EXPECT_TRUE(release(*lease));
}

// Be it the leader or not: the connection is open, and nothing comes.
TEST_F(ZooKeeperThree, WhenItsServerFallsSilentAHolderGoesToAnother) {
  auto lease = hold(*a, lasting());
  EXPECT_TRUE(renew(*lease));
  const int any = three->operator[](0).port();
  const std::string child = ZooKeeperClient(any).children("/dlock/job").at(0);
  std::ostringstream session;
  session << "sid=0x" << std::hex << ZooKeeperClient(any).stat("/dlock/job/" + child)->session;
  std::size_t its = 0;
  while (its < 3 && three->operator[](its).ask("cons").find(session.str()) == std::string::npos) {
    ++its;
  }
  ASSERT_LT(its, 3u) << session.str();
  three->operator[](its).pause();
  const Deadline end = lease->valid_until();
  Result<void> renewed = Error{};
  while (!renewed && Clock::now() < end) {
    renewed = lease->renew(std::min(in(2'000), end), Cancel());
  }
  EXPECT_TRUE(renewed);
  EXPECT_GT(lease->valid_until(), end);
  const std::size_t another = (its + 1) % 3;
  EXPECT_TRUE(eventually([&] { return !three->operator[](another).mode().empty(); }));
  auto other = connect_zookeeper(three->operator[](another).url());
  EXPECT_TRUE(eventually([&] {
    const auto outcome = try_once(*other, lasting());
    return !outcome && outcome.error().code == Errc::busy;
  }));
  EXPECT_TRUE(release(*lease));
  three->operator[](its).resume();
  EXPECT_TRUE(is_free_for(*other, lasting()));
}

// A follower goes on to answer for as long as it does not know that it is cut off from its leader.
TEST_F(ZooKeeperThree, AnAnswerOfAFollowerWhoseLeaderIsSilentDoesNotMoveTheEnd) {
  const std::size_t leader = three->leader();
  auto follower = connect_zookeeper(three->operator[]((leader + 1) % 3).url());
  auto lease = hold(*follower, lasting());
  EXPECT_TRUE(renew(*lease));
  three->operator[](leader).pause();
  const Deadline valid_until = lease->valid_until();
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(lease->renew(in(300), Cancel()));
    EXPECT_LE(lease->valid_until(), valid_until);
  }
  three->operator[](leader).resume();
}

// --- rights

constexpr const char* kJoe = "joe:secret";

TEST_F(ZooKeeperServers, NodesOfAUserAreTheirsAlone) {
  auto joe = client({.auth = kJoe});
  auto lease = hold(*joe, request("job"));
  ZooKeeperClient oracle(server->port());
  oracle.add_digest(kJoe);
  for (const std::string& path :
       {std::string("/dlock/job"), "/dlock/job/" + oracle.children("/dlock/job").at(0)}) {
    const std::string acl = oracle.acl(path);
    EXPECT_TRUE(acl.starts_with("digest:joe:") && acl.ends_with(":cdrwa")) << acl;
    EXPECT_EQ(acl.find(','), std::string::npos) << acl;
  }
  for (const std::string auth : {"", "joe:wrong", "eve:secret"}) {
    auto other = client({.auth = auth});
    const auto outcome = try_once(*other, request("job"));
    ASSERT_EQ(code_of(outcome), Errc::denied) << auth;
    EXPECT_EQ(outcome.error().message.find("secret"), std::string::npos);
    EXPECT_EQ(outcome.error().message.find("wrong"), std::string::npos);
    EXPECT_NE(outcome.error().message.find(auth.empty() ? "auth_file" : "permission"),
              std::string::npos)
        << outcome.error().message;
    EXPECT_EQ(other->inspect("job", soon()).error().code, Errc::denied);
  }
  Waiting waiting(client({.auth = kJoe}), request("job"));
  ASSERT_TRUE(waiting.blocked());
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(waiting.lease());
}

TEST_F(ZooKeeperServers, WhatARightIsMissingForIsSaidAndNothingIsLeft) {
  const auto deny = [&](const std::string& path, const std::string& rights) {
    ZooKeeperClient oracle(server->port());
    oracle.add_digest(kJoe);
    oracle.create_all(path);
    oracle.set_acl(path, "auth::cdrwa" + (rights.empty() ? "" : ",world:anyone:" + rights));
  };
  const auto left = [&] {
    ZooKeeperClient oracle(server->port());
    oracle.add_digest(kJoe);
    return oracle.children("/dlock/job").size();
  };
  deny("/dlock/job", "rd");
  auto outcome = try_once(*a, request("job"));
  EXPECT_EQ(code_of(outcome), Errc::denied);
  EXPECT_NE(outcome.error().message.find("create"), std::string::npos) << outcome.error().message;
  EXPECT_EQ(left(), 0u);
  deny("/dlock/job", "cd");
  outcome = try_once(*a, request("job"));
  EXPECT_EQ(code_of(outcome), Errc::denied);
  EXPECT_NE(outcome.error().message.find("list"), std::string::npos) << outcome.error().message;
  EXPECT_TRUE(eventually([&] { return left() == 0; }));
  deny("/dlock/job", "cr");  // who may not delete lets go by ending the session
  outcome = try_once(*a, request("job"));
  if (outcome) {
    EXPECT_TRUE(release(**outcome));
  } else {
    EXPECT_EQ(outcome.error().code, Errc::denied);
  }
  EXPECT_TRUE(eventually([&] { return left() == 0; }));
  deny("/dlock", "rd");
  outcome = try_once(*a, request("new"));
  EXPECT_EQ(code_of(outcome), Errc::denied);
  EXPECT_NE(outcome.error().message.find("/dlock"), std::string::npos) << outcome.error().message;
}

TEST_F(ZooKeeperServers, AHolderWhoseNodeCannotBeReadIsWaitedForAllTheSame) {
  nodes().create_all("/dlock/job");
  ZooKeeperClient other(server->port());
  other.add_digest(kJoe);
  const std::string path = other.create("/dlock/job/lock-", "text", Znode::ephemeral_sequential);
  other.set_acl(path, "auth::cdrwa");
  EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
  const LockInfo info = inspect(*b, "job");
  EXPECT_EQ(info.holders.size(), 1u);
  Waiting waiting(client(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  ASSERT_TRUE(eventually([&] { return server->monitored("zk_watch_count") > 0; }));
  other.remove(path);
  auto lease = waiting.lease();
  ASSERT_TRUE(lease);
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(queue_is(0));
}

// --- addresses

TEST_F(ZooKeeperServers, AChrootIsTheRootAndIsNotCreated) {
  const std::string url = server->url() + "/team/a";
  auto inside = connect_zookeeper(url);
  auto outcome = try_once(*inside, request("job"));
  EXPECT_EQ(code_of(outcome), Errc::invalid);
  EXPECT_NE(outcome.error().message.find("/team/a"), std::string::npos) << outcome.error().message;
  EXPECT_EQ(nodes().children("/"), std::vector<std::string>{"zookeeper"});
  nodes().create_all("/team/a");
  auto lease = hold(*inside, request("job"));
  EXPECT_EQ(nodes().children("/team/a/dlock/job").size(), 1u);
  EXPECT_EQ(inspect(*inside, "job").holders.size(), 1u);
  EXPECT_EQ(inside->list("", soon()).value().size(), 1u);
  EXPECT_TRUE(is_free_for(*a, request("job")));
  EXPECT_TRUE(release(*lease));
}

TEST_F(ZooKeeperServers, AHostThatDoesNotResolveSaysSoUnlessAnotherOneDoes) {
  const std::string bad = "no-such-host.invalid:2181";
  auto lost = open_zookeeper("zookeeper://" + bad, {.patience = Millis{3'000}});
  ASSERT_TRUE(lost);
  const auto outcome = try_once(**lost, request("job"));
  EXPECT_EQ(code_of(outcome), Errc::unreachable);
  EXPECT_NE(outcome.error().message.find("no-such-host.invalid"), std::string::npos)
      << outcome.error().message;
  auto one = connect_zookeeper("zookeeper://" + bad + ',' + server->address());
  EXPECT_TRUE(is_free_for(*one, request("job")));
}

}  // namespace
}  // namespace dlock::test
