// The ZooKeeper servers that the other tests rely on do what they say.
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/zookeeper_client.hpp"
#include "support/zookeeper_server.hpp"

namespace dlock::test {
namespace {

using Names = std::vector<std::string>;

class SupportZooKeeper : public testing::Test {
 protected:
  void SetUp() override {
    if (!ZooKeeperServer::available()) GTEST_SKIP() << "zookeeper is not installed";
  }
};

std::string complaint_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

TEST_F(SupportZooKeeper, IsReadyAndEmptyAndAnswersToFourLetters) {
  const ZooKeeperServer server;
  EXPECT_EQ(server.mode(), "standalone");
  EXPECT_EQ(server.ask("ruok"), "imok");
  EXPECT_EQ(server.monitored("zk_watch_count"), 0);
  EXPECT_EQ(server.monitored("nonsense"), -1);
  EXPECT_EQ(ZooKeeperClient(server.port()).children("/"), Names{"zookeeper"});
}

TEST_F(SupportZooKeeper, ItsClientDoesWhatItIsAsked) {
  const ZooKeeperServer server;
  ZooKeeperClient client(server.port());
  EXPECT_EQ(client.create("/a", "text"), "/a");
  EXPECT_EQ(client.data("/a"), "text");
  client.set("/a", "other");
  EXPECT_EQ(client.data("/a"), "other");
  EXPECT_EQ(client.stat("/a")->version, 1);
  EXPECT_FALSE(client.stat("/b"));
  client.create_all("/b/c");
  EXPECT_EQ(client.create("/b/c/n-", "", Znode::persistent_sequential), "/b/c/n-0000000000");
  EXPECT_EQ(client.create("/b/c/n-", "", Znode::ephemeral_sequential), "/b/c/n-0000000001");
  EXPECT_EQ(client.stat("/b/c/n-0000000001")->session, client.session());
  EXPECT_EQ(client.children("/b/c"), (Names{"n-0000000000", "n-0000000001"}));
  EXPECT_NE(complaint_of([&] { client.remove("/b"); }).find("NotEmpty"), std::string::npos);
  client.remove_all("/b");
  EXPECT_EQ(client.children("/"), (Names{"a", "zookeeper"}));
  EXPECT_EQ(client.acl("/a"), "world:anyone:cdrwa");
  client.add_digest("joe:secret");
  client.set_acl("/a", "auth::cdrwa,world:anyone:r");
  EXPECT_TRUE(client.acl("/a").starts_with("digest:joe:")) << client.acl("/a");
  EXPECT_NE(complaint_of([&] { ZooKeeperClient(server.port()).set("/a", ""); }).find("NoAuth"),
            std::string::npos);
}

TEST_F(SupportZooKeeper, ItsClientEndsASessionThatIsNotItsOwn) {
  const ZooKeeperServer server;
  ZooKeeperClient one(server.port());
  ZooKeeperClient two(server.port());
  one.create("/e", "", Znode::ephemeral);
  ZooKeeperClient::end_session(server.port(), one.session());
  EXPECT_FALSE(two.exists("/e"));
  EXPECT_NE(complaint_of([&] { one.exists("/e"); }), "none");
}

TEST_F(SupportZooKeeper, StartsAgainWithItsSessionsUnlessErased) {
  ZooKeeperServer server;
  ZooKeeperClient client(server.port());
  client.create("/e", "", Znode::ephemeral);
  server.start_again();
  EXPECT_EQ(ZooKeeperClient(server.port()).stat("/e")->session, client.session());
  server.erase();
  server.start_again();
  EXPECT_FALSE(ZooKeeperClient(server.port()).exists("/e"));
}

TEST_F(SupportZooKeeper, DoesNothingWhilePaused) {
  ZooKeeperServer server;
  server.pause();
  EXPECT_EQ(server.ask("ruok"), "");
  server.resume();
  EXPECT_EQ(server.ask("ruok"), "imok");
}

TEST_F(SupportZooKeeper, SaysWhyItDoesNotStart) {
  const std::string why =
      complaint_of([] { ZooKeeperServer({.settings = {"tickTime=nonsense"}}); });
  EXPECT_NE(why.find("nonsense"), std::string::npos) << why;
}

TEST_F(SupportZooKeeper, AnEnsembleElectsAnotherLeaderForOneThatIsKilled) {
  ZooKeeperEnsemble ensemble;
  const std::size_t first = ensemble.leader();
  const std::size_t next = (first + 1) % ensemble.size();
  ZooKeeperClient(ensemble[first].port()).create("/a");
  ensemble[first].kill();
  EXPECT_NE(ensemble.leader(), first);
  ensemble[next].wait_until_ready();
  EXPECT_TRUE(ZooKeeperClient(ensemble[next].port()).exists("/a"));
  ensemble[first].start_again();
  EXPECT_EQ(ensemble[first].mode(), "follower");
}

}  // namespace
}  // namespace dlock::test
