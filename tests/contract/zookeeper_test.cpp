// What the ZooKeeper backend makes on a server, and what it makes of what others left there.
#include <gtest/gtest.h>

#include <atomic>
#include <regex>
#include <stdexcept>
#include <thread>

#include "zookeeper_fixture.hpp"

namespace dlock::test {
namespace {

using Names = std::vector<std::string>;

class ZooKeeperNodes : public ZooKeeperTest {
 protected:
  // So many requests does the server get while this runs.
  template <typename Function>
  long requests_of(const Function& what) {
    const long first = received();
    const long before = received();
    what();
    return received() - before - (before - first);  // without the asking itself
  }
  long received() { return server->monitored("zk_packets_received"); }
};

// --- the way to a lock

TEST_F(ZooKeeperNodes, AnAcquireIsASessionACreateAndAList) {
  auto lease = hold(*a, request("job"));
  EXPECT_TRUE(release(*lease));
  EXPECT_LE(requests_of([&] { lease = hold(*a, request("job")); }), 3);
  EXPECT_LE(requests_of([&] { EXPECT_TRUE(release(*lease)); }), 2);
}

TEST_F(ZooKeeperNodes, TheFirstAcquireOfAKeyMakesItsParents) {
  std::unique_ptr<Lease> lease;
  // Session; create and list; the root and the key; create and list.
  EXPECT_LE(requests_of([&] { lease = hold(*a, request("job")); }), 7);
  EXPECT_EQ(nodes().children("/"), (Names{"dlock", "zookeeper"}));
  EXPECT_EQ(nodes().children("/dlock"), Names{"job"});
}

TEST_F(ZooKeeperNodes, NamesAreThoseOfTheStyle) {
  const std::string uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
  struct Case {
    const char* style;
    Request wanted;
    std::string name;
  };
  for (const Case& one :
       std::vector<Case>{{"", request("job"), "_c_" + uuid + "-lock-[0-9]{10}"},
                         {"curator", shared("job"), "_c_" + uuid + "-__READ__[0-9]{10}"},
                         {"curator-rw", request("job"), "_c_" + uuid + "-__WRIT__[0-9]{10}"},
                         {"curator-rw", shared("job"), "_c_" + uuid + "-__READ__[0-9]{10}"},
                         {"curator", slots("job", 3), "_c_" + uuid + "-slots-3-lock-[0-9]{10}"},
                         {"kazoo", request("job"), "[0-9a-f]{32}__lock__[0-9]{10}"},
                         {"kazoo", shared("job"), "[0-9a-f]{32}__rlock__[0-9]{10}"},
                         {"kazoo", slots("job", 3), "[0-9a-f]{32}__slots-3__lock__[0-9]{10}"}}) {
    auto backend = client({.style = one.style});
    auto lease = hold(*backend, one.wanted);
    const Names names = children();
    ASSERT_EQ(names.size(), zookeeper_nodes_of(one.wanted));
    EXPECT_TRUE(std::regex_match(names[0], std::regex(one.name))) << names[0];
    EXPECT_NE(session_of(names[0]), 0);
    EXPECT_NE(nodes().data("/dlock/job/" + names[0]).find(one.wanted.owner.id), std::string::npos);
    EXPECT_TRUE(release(*lease));
    EXPECT_TRUE(children().empty());
  }
  EXPECT_FALSE(open_zookeeper(server->url(), {.style = "nonsense"}));
}

TEST_F(ZooKeeperNodes, ThePrefixIsThePathAboveTheKey) {
  auto deep = client({.prefix = "/a/b"});
  auto lease = hold(*deep, request("job"));
  EXPECT_EQ(nodes().children("/a/b/job").size(), 1u);
  EXPECT_TRUE(is_free_for(*a, request("job")));
  auto bare = client({.prefix = "/"});
  auto other = hold(*bare, request("job"));
  EXPECT_EQ(nodes().children("/job").size(), 1u);
  EXPECT_FALSE(try_once(*bare, request("zookeeper")));
  EXPECT_TRUE(release(*other));
  EXPECT_TRUE(release(*lease));
}

TEST_F(ZooKeeperNodes, KeysAreSafeComponents) {
  for (const std::string key : {"a/b", ".", "..", "50%", "\xC3\xA4", "zookeeper", "a b"}) {
    auto lease = hold(*a, request(key));
    const Names names = nodes().children("/dlock");
    EXPECT_EQ(inspect(*b, key).holders.size(), 1u) << key;
    EXPECT_TRUE(release(*lease));
    for (const std::string& name : names) {
      EXPECT_TRUE(std::regex_match(name, std::regex("[%0-9A-Za-z._-]*"))) << name;
      EXPECT_TRUE(name != "." && name != "..") << key;
    }
  }
}

// --- the fence

TEST_F(ZooKeeperNodes, TheFenceIsTheZxidOfTheNode) {
  auto lease = hold(*a, request("job"));
  const auto stat = nodes().stat("/dlock/job/" + children().at(0));
  EXPECT_EQ(lease->fence(), static_cast<std::uint64_t>(stat->created_zxid));
}

TEST_F(ZooKeeperNodes, AnEmptyLockIsReapedAndTheFenceGrowsOn) {
  start(ZooKeeperOptions{.properties = {"-Dznode.container.checkIntervalMs=50"}});
  auto lease = hold(*a, request("job"));
  const std::string first = children().at(0);
  const auto fence = lease->fence();
  EXPECT_TRUE(release(*lease));
  ASSERT_TRUE(eventually([&] { return !nodes().exists("/dlock/job"); }));
  lease = hold(*a, request("job"));
  ASSERT_EQ(children().size(), 1u);
  EXPECT_TRUE(children()[0].ends_with("0000000000")) << children()[0];
  EXPECT_TRUE(first.ends_with("0000000000")) << first;
  EXPECT_GT(lease->fence(), fence);
}

TEST_F(ZooKeeperNodes, AParentThatIsReapedInBetweenIsMadeAgain) {
  start(ZooKeeperOptions{.properties = {"-Dznode.container.checkIntervalMs=1"}});
  for (int round = 0; round < 150; ++round) {
    auto lease = hold(*a, request("job"));
    ASSERT_TRUE(lease) << round;
    EXPECT_TRUE(release(*lease));
  }
}

// That the nodes above it cannot be made anew is no matter, as long as they are there.
TEST_F(ZooKeeperNodes, AParentIsMadeAgainBelowOneThatWeMayNotMake) {
  start(ZooKeeperOptions{.properties = {"-Dznode.container.checkIntervalMs=1"}});
  nodes().create("/app");
  nodes().set_acl("/", "world:anyone:rwda");
  const auto client = connect_zookeeper(server->url(), {.prefix = "/app/locks"});
  std::atomic<bool> stop = false;
  std::thread reaper([&] {  // faster than the server is
    auto oracle = nodes();
    while (!stop) {
      for (const char* path : {"/app/locks/job", "/app/locks"}) {
        try {
          oracle.remove(path);
        } catch (const std::runtime_error&) {  // not there, or not empty
        }
      }
    }
  });
  for (int round = 0; round < 300; ++round) {
    auto lease = try_once(*client, request("job"));
    // It may be deleted each time that it is tried.
    if (!lease) {
      EXPECT_EQ(lease.error().code, Errc::unreachable) << lease.error().message;
    } else {
      EXPECT_TRUE(release(**lease));
    }
  }
  stop = true;
  reaper.join();
}

// --- what others left there

TEST_F(ZooKeeperNodes, ChildrenWithoutANumberAreInNobodysWayAndAreShown) {
  nodes().create_all("/dlock/job");
  for (const std::string name : {"junk", "lock-", "lock-12", "x\xC3\xA4", "config"}) {
    nodes().create("/dlock/job/" + name, "text");
  }
  auto lease = try_once(*a, request("job"));
  ASSERT_TRUE(lease) << lease.error().message;
  const LockInfo info = inspect(*b, "job");
  EXPECT_EQ(info.holders.size(), 1u);
  ASSERT_EQ(info.remarks.size(), 1u);
  EXPECT_NE(info.remarks[0].find('5'), std::string::npos) << info.remarks[0];
  EXPECT_TRUE(release(**lease));
  EXPECT_EQ(children().size(), 5u);
}

TEST_F(ZooKeeperNodes, WhoeverHasANumberIsHonoured) {
  nodes().create_all("/dlock/job");
  for (const std::string prefix : {"lock-", "x-", "_c_73a1-lock-", "0f__lock__", ""}) {
    ZooKeeperClient other(server->port());
    const std::string path =
        other.create("/dlock/job/" + prefix, "10.0.0.1", Znode::ephemeral_sequential);
    EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy) << prefix;
    const LockInfo info = inspect(*b, "job");
    ASSERT_EQ(info.holders.size(), 1u);
    EXPECT_TRUE(info.holders[0].foreign) << prefix;
    EXPECT_TRUE(info.holders[0].fence) << prefix;
    EXPECT_EQ(b->list("job", soon()).value().size(), 1u) << prefix;
    Waiting waiting(client(), request("job"));
    ASSERT_TRUE(waiting.blocked());
    other.remove(path);
    auto lease = waiting.lease();
    ASSERT_TRUE(lease);
    EXPECT_TRUE(release(*lease));
  }
}

TEST_F(ZooKeeperNodes, APersistentNodeIsHeldForGoodAndCanBeBroken) {
  nodes().create_all("/dlock/job");
  nodes().create("/dlock/job/lock-", "left", Znode::persistent_sequential);
  const LockInfo info = inspect(*b, "job");
  ASSERT_EQ(info.holders.size(), 1u);
  EXPECT_TRUE(info.holders[0].endless);
  EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
  EXPECT_TRUE(*b->force_release("job", info.holders[0].owner.id, {"test"}, soon()));
  EXPECT_TRUE(is_free_for(*a, request("job")));
}

TEST_F(ZooKeeperNodes, AMegabyteInASiblingIsNoTrouble) {
  nodes().create_all("/dlock/job");
  ZooKeeperClient other(server->port());
  const std::string path =
      other.create("/dlock/job/lock-", std::string(1'000'000, 'x'), Znode::ephemeral_sequential);
  EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
  EXPECT_EQ(inspect(*b, "job").holders.size(), 1u);
  EXPECT_EQ(b->list("", soon()).value().size(), 1u);
  Waiting waiting(client(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  other.remove(path);
  EXPECT_TRUE(waiting.lease());
}

TEST_F(ZooKeeperNodes, AmongFiveThousandSiblingsItGoesOnAsBefore) {
  nodes().create_all("/dlock/job");
  ZooKeeperClient other(server->port());
  for (int i = 0; i < 5'000; ++i) {
    other.create("/dlock/job/" + std::string(40, 'n') + "-lock-", "", Znode::ephemeral_sequential);
  }
  EXPECT_LT(time_of([&] { EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy); }),
            here(Millis{5'000}));
  EXPECT_LT(time_of([&] { EXPECT_EQ(inspect(*b, "job").waiters->size(), 4'999u); }),
            here(Millis{10'000}));
  EXPECT_EQ(children().size(), 5'000u);
  Waiting waiting(client(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  ASSERT_TRUE(queue_is(5'001));
  ZooKeeperClient::end_session(server->port(), other.session());
  EXPECT_TRUE(waiting.lease());
}

// --- readers, writers and slots

TEST_F(ZooKeeperNodes, WriteReadReadWriteGoInTheirOrder) {
  auto writer = hold(*a, request("job"));
  Waiting one(client(), shared("job"));
  ASSERT_TRUE(waiters_are(1));
  Waiting two(client(), shared("job"));
  ASSERT_TRUE(waiters_are(2));
  Waiting last(client(), request("job"));
  ASSERT_TRUE(waiters_are(3));
  Waiting late(client(), shared("job"));
  ASSERT_TRUE(waiters_are(4));
  EXPECT_TRUE(release(*writer));
  auto first = one.lease();
  auto second = two.lease();
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(waiters_are(2));  // a reader behind the writer does not overtake it
  EXPECT_FALSE(last.done(20));
  EXPECT_TRUE(release(*first));
  EXPECT_FALSE(last.done(20));
  EXPECT_TRUE(release(*second));
  writer = last.lease();
  ASSERT_TRUE(writer);
  EXPECT_FALSE(late.done(20));
  EXPECT_TRUE(release(*writer));
  EXPECT_TRUE(late.lease());
}

TEST_F(ZooKeeperNodes, AReaderThatEndsWakesNoReaderBehindTheWriter) {
  auto reader = hold(*a, shared("job"));
  Waiting writer(client(), request("job"));
  ASSERT_TRUE(waiters_are(1));
  Waiting one(client(), shared("job"));
  ASSERT_TRUE(waiters_are(2));
  Waiting two(client(), shared("job"));
  ASSERT_TRUE(waiters_are(3));
  // The writer watches the reader, both readers the writer.
  EXPECT_TRUE(eventually([&] { return server->monitored("zk_watch_count") == 3; }));
  EXPECT_NE(server->ask("wchs").find("3 connections watching 2 paths"), std::string::npos)
      << server->ask("wchs");
  EXPECT_TRUE(release(*reader));
  auto lease = writer.lease();
  ASSERT_TRUE(lease);
  // Both readers hear who holds it now, and watch it again.
  EXPECT_TRUE(eventually([&] { return server->monitored("zk_watch_count") == 2; }));
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(one.lease() && two.lease());
}

// The next holder writes its record between the waiter's list and the watch, which never reports
// it.
TEST_F(ZooKeeperNodes, AHolderThatComesBeforeTheWatchIsToldOfToo) {
  auto first = hold(*a, request("job"));
  Waiting next(client(), request("job"));
  ASSERT_TRUE(next.blocked());
  std::unique_ptr<Lease> second;
  CancelSource source;
  std::string told;
  const auto tell = [&](const LockInfo& info) {
    told = info.holders.at(0).owner.id;
    if (second) return source.fire();
    EXPECT_TRUE(release(*first));
    second = next.lease();
  };
  const auto lease = client()->acquire(request("job"), {soon(), source.cancel(), tell});
  EXPECT_EQ(code_of(lease), Errc::cancelled);
  ASSERT_TRUE(second);
  EXPECT_EQ(told, second->owner_id());
  EXPECT_TRUE(release(*second));
}

TEST_F(ZooKeeperNodes, SlotsPassThroughAHeadThatGivesUp) {
  auto one = hold(*a, slots("job", 2));
  auto two = hold(*a, slots("job", 2));
  auto head = std::make_unique<Waiting>(client(), slots("job", 2));
  ASSERT_TRUE(waiters_are(1));
  Waiting next(client(), slots("job", 2));
  ASSERT_TRUE(waiters_are(2));
  Waiting last(client(), slots("job", 2));
  ASSERT_TRUE(waiters_are(3));
  head.reset();
  ASSERT_TRUE(waiters_are(2));
  EXPECT_TRUE(release(*two));  // not the first: any of them may make room
  auto three = next.lease();
  ASSERT_TRUE(three);
  EXPECT_TRUE(release(*three));
  EXPECT_TRUE(last.lease());
}

}  // namespace
}  // namespace dlock::test
