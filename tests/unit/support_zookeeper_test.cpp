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

TEST_F(SupportZooKeeper, TheServerAnswersAndItsClientDoesWhatItIsAsked) {
  const ZooKeeperServer server;
  EXPECT_EQ(server.mode(), "standalone");
  EXPECT_EQ(server.monitored("zk_watch_count"), 0);
  EXPECT_EQ(server.monitored("nonsense"), -1);
  ZooKeeperClient client(server.port());
  EXPECT_EQ(client.children("/"), Names{"zookeeper"});
  EXPECT_EQ(client.create("/a", "text"), "/a");
  client.set("/a", "other");
  EXPECT_EQ(client.data("/a"), "other");
  EXPECT_EQ(client.stat("/a")->version, 1);
  EXPECT_FALSE(client.stat("/b"));
  client.create_all("/b/c");
  EXPECT_EQ(client.create("/b/c/n-", "", Znode::persistent_sequential), "/b/c/n-0000000000");
  EXPECT_EQ(client.create("/b/c/n-", "", Znode::ephemeral_sequential), "/b/c/n-0000000001");
  EXPECT_EQ(client.stat("/b/c/n-0000000001")->session, client.session());
  EXPECT_NE(complaint_of([&] { client.remove("/b"); }).find("NotEmpty"), std::string::npos);
  client.remove_all("/b");
  EXPECT_EQ(client.children("/"), (Names{"a", "zookeeper"}));
  client.add_digest("joe:secret");
  client.set_acl("/a", "auth::cdrwa,world:anyone:r");
  EXPECT_TRUE(client.acl("/a").starts_with("digest:joe:")) << client.acl("/a");
  ZooKeeperClient other(server.port());
  EXPECT_NE(complaint_of([&] { other.set("/a", ""); }).find("NoAuth"), std::string::npos);
  client.create("/e", "", Znode::ephemeral);
  ZooKeeperClient::end_session(server.port(), client.session());
  EXPECT_FALSE(other.exists("/e"));
}

}  // namespace
}  // namespace dlock::test
