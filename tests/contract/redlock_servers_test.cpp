// Which servers can be used together, and how to get in.
#include <gtest/gtest.h>

#include "redlock_fixture.hpp"

namespace dlock::test {
namespace {

class RedlockServers : public RedlockTest {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server is not installed";
  }
  static Url url(const std::string& text) { return parse_url(text).value(); }
  /// Of servers that each have a URL.
  static Target target(const std::vector<std::string>& urls, const std::string& all = {}) {
    Target out{.url = url("redlock://" + all)};
    for (const std::string& one : urls) out.servers.push_back(url(one));
    return out;
  }
  std::string host(unsigned node, const std::string& name = "127.0.0.1") const {
    return name + ':' + std::to_string(servers[node].port());
  }
  std::string of_socket(unsigned node) const {
    return "redis+unix://" + servers[node].socket_path();
  }
  void make_replica(unsigned node) {
    servers[0].command("CONFIG", "SET", "repl-diskless-sync-delay", "0");
    servers[node].command("REPLICAOF", "127.0.0.1", std::to_string(servers[0].port()));
    ASSERT_TRUE(eventually([&] {
      return servers[node].command("INFO", "replication").find("master_link_status:up") !=
             std::string::npos;
    }));
  }
  static void expect_invalid(Backend& client, const std::vector<std::string>& said) {
    const auto lease = try_once(client, request("job"));
    ASSERT_FALSE(lease);
    EXPECT_EQ(lease.error().code, Errc::invalid);
    for (const std::string& text : said) {
      EXPECT_NE(lease.error().message.find(text), std::string::npos) << lease.error().message;
    }
  }
};

// --- how many

TEST_F(RedlockServers, AnyNumberWorksAndOneThatIsNoGoodDrawsAWarning) {
  struct Row {
    unsigned count;
    std::string warning;  // none: it is a good one
  };
  for (const auto& [count, warning] :
       {Row{1, "1 server survives the failure of none"},
        Row{2, "2 servers survive the failure of none, as 1 does"}, Row{3, ""},
        Row{4, "4 servers survive the failure of 1, as 3 do"}}) {
    SCOPED_TRACE(count);
    start(count);
    testing::internal::CaptureStderr();
    auto a = client();
    auto b = client();
    const std::string said = testing::internal::GetCapturedStderr();
    if (warning.empty()) {
      EXPECT_EQ(said, "");
    } else {
      EXPECT_NE(said.find(warning), std::string::npos) << said;
    }
    auto lease = hold(*a, request("job"));
    ASSERT_TRUE(lease);
    const auto fence = lease->fence();
    ASSERT_TRUE(fence);
    EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
    EXPECT_TRUE(renew_soon(*lease));
    EXPECT_TRUE(release(*lease));
    EXPECT_GT(hold(*b, request("job"))->fence(), fence);
  }
}

TEST_F(RedlockServers, AsManyMayFailAsTheWarningSays) {
  for (const unsigned count : {2U, 3U, 4U}) {
    start(count);
    auto a = client();
    const unsigned spare = (count - 1) / 2;
    for (unsigned node = 0; node < spare; ++node) servers[node].kill();
    EXPECT_TRUE(is_free_for(*a, request("job"))) << count;
    servers[spare].kill();
    EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::unreachable) << count;
  }
}

// --- one that stands in the list twice

TEST_F(RedlockServers, TheSameAddressTwiceIsRefusedBeforeAnythingIsAsked) {
  start(2);
  const auto checked = find_backend("redlock")->place(
      {.url = url("redlock://" + host(0) + ',' + host(1) + ',' + host(0))});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Errc::invalid);
  EXPECT_NE(checked.error().message.find(host(0)), std::string::npos) << checked.error().message;
}

TEST_F(RedlockServers, TheSameServerByTwoNamesIsRefused) {
  start(3);
  // All of them, so that a majority is not there without it.
  expect_invalid(*connect(host(0) + ',' + host(0, "localhost")),
                 {host(0), host(0, "localhost"), "same server"});
  expect_invalid(*open(target({of_socket(0), "redis://" + host(0)})),
                 {servers[0].socket_path(), host(0), "same server"});
  EXPECT_EQ(servers[0].command("EXISTS", lock_of("job")), "0");
}

// Unless the others, a majority, were faster.  Then it does not count when the lease is renewed.
TEST_F(RedlockServers, TheSameServerByTwoNamesIsRefusedAlsoAmongOthers) {
  start(3);
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    auto client = connect(host(0) + ',' + host(1) + ',' + host(0, "localhost"));
    auto lease = try_once(*client, request("job" + std::to_string(i)));
    if (lease) {
      servers[1].pause();
      EXPECT_EQ(renew(**lease).error().code, Errc::unreachable);
      servers[1].resume();
      continue;
    }
    ++refused;
    EXPECT_EQ(lease.error().code, Errc::invalid) << lease.error().message;
    EXPECT_NE(lease.error().message.find(host(0, "localhost")), std::string::npos)
        << lease.error().message;
  }
  EXPECT_GT(refused, 0);
}

// A client with such a list must not count the server twice.
TEST_F(RedlockServers, TheSameServerByTwoNamesIsNoMajority) {
  start(3);
  auto honest = client();
  servers[1].kill();
  servers[2].kill();
  auto doubled = connect(host(0) + ',' + host(1) + ',' + host(0, "localhost"));
  EXPECT_FALSE(try_once(*doubled, request("job")));
  EXPECT_EQ(servers[0].command("EXISTS", lock_of("job")), "0");
}

// Also for a user with no more rights than dlock-redis(7) asks for, and in each mode.
TEST_F(RedlockServers, TheSameServerByTwoNamesIsNoMajorityForAUserWithFewRights) {
  start(2);
  for (const RedisServer& server : servers) server.run(user_with_few_rights("dlock"));
  servers[1].kill();
  auto doubled = connect("dlock:pw@" + host(0) + ',' + host(1) + ',' + host(0, "localhost"));
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 1)}) {
    auto lease = try_once(*doubled, wanted);
    EXPECT_EQ(code_of(lease), Errc::invalid) << mode_name(wanted.mode);
    EXPECT_EQ(servers[0].command("EXISTS", lock_of("job")), "0");
  }
}

// It was granted by two of three, and one of those is gone: the other, asked twice, is no majority.
TEST_F(RedlockServers, TheSameServerByTwoNamesIsNoMajorityForARenewal) {
  start(3);
  auto doubled = connect(host(0) + ',' + host(1) + ',' + host(0, "localhost"));
  auto lease = try_once(*doubled, request("job"));
  if (!lease) return;  // as it should be
  let_finish(*doubled);
  servers[1].kill();
  EXPECT_FALSE(renew(**lease));
}

// --- a replica

TEST_F(RedlockServers, AReplicaDoesNotCount) {
  start(3);
  make_replica(2);
  for (int i = 0; i < 20; ++i) {
    auto client = connect(addresses_of(servers));
    testing::internal::CaptureStderr();
    auto lease = try_once(*client, request("job" + std::to_string(i)));
    ASSERT_TRUE(lease) << lease.error().message;
    for (int k = 0; k < 3; ++k) {
      EXPECT_TRUE(renew_soon(**lease));
    }
    EXPECT_TRUE(release(**lease));
    let_finish(*client);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find(host(2)), std::string::npos) << said;
    EXPECT_NE(said.find("replica"), std::string::npos) << said;
    EXPECT_EQ(said.find("replica"), said.rfind("replica")) << "more than once: " << said;
  }
}

TEST_F(RedlockServers, AReplicaThatIsNeededIsNamed) {
  start(3);
  make_replica(2);
  servers[1].kill();
  auto lease = try_once(*client(), request("job"));
  ASSERT_EQ(code_of(lease), Errc::unreachable) << lease.error().message;
  EXPECT_NE(lease.error().message.find("1 of 3 servers answered"), std::string::npos)
      << lease.error().message;
  EXPECT_NE(lease.error().message.find(host(2) + ": is a replica"), std::string::npos)
      << lease.error().message;
  EXPECT_EQ(servers[0].command("EXISTS", lock_of("job")), "0");
}

// --- how to get in

TEST_F(RedlockServers, EachServerMayHaveItsOwnUserPasswordAndDatabase) {
  servers.emplace_back();
  servers.emplace_back(RedisOptions{.settings = {"requirepass one"}});
  servers.emplace_back();
  servers.emplace_back();
  servers.emplace_back(RedisOptions{.settings = {"requirepass two"}});
  servers[2].command("ACL", "SETUSER", "app", "on", ">three", "~*", "&*", "+@all");
  servers[2].command("ACL", "SETUSER", "default", "off");
  const std::vector<std::string> urls{"redis://" + host(0) + "/3", "redis://:one@" + host(1),
                                      "redis://app:three@" + host(2) + "/1", of_socket(3) + "?db=2",
                                      "redis://:two@" + host(4) + "/15"};
  auto a = open(target(urls));
  auto b = open(target(urls));
  auto lease = hold(*a, request("job"));
  ASSERT_TRUE(lease);
  let_finish(*a);
  const auto info = inspect(*b, "job");
  EXPECT_EQ(info.nodes_agreeing, 5u) << testing::PrintToString(info.remarks);
  EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
  EXPECT_TRUE(renew_soon(*lease));
  EXPECT_EQ(servers[0].command("INFO", "keyspace").find("db3:"), 12u);
  EXPECT_EQ(servers[3].command("INFO", "keyspace").find("db2:"), 12u);
  EXPECT_EQ(servers[4].command("INFO", "keyspace").find("db15:"), 12u);
  Waiting waiting(open(target(urls)), request("job"));
  ASSERT_TRUE(waiting.blocked());
  EXPECT_TRUE(release(*lease));
  lease = waiting.lease();
  ASSERT_TRUE(lease);
  EXPECT_TRUE(release(*lease));
}

TEST_F(RedlockServers, WhatAllHaveInCommonIsSaidOnce) {
  for (int i = 0; i < 3; ++i) {
    servers.emplace_back(RedisOptions{.settings = {"requirepass secret"}});
  }
  auto a = connect(":secret@" + addresses_of(servers) + "/4");
  auto lease = hold(*a, request("job"));
  ASSERT_TRUE(lease);
  let_finish(*a);
  for (const RedisServer& server : servers) {
    EXPECT_EQ(server.command("INFO", "keyspace").find("db4:"), 12u);
  }
  EXPECT_EQ(a->location().find("secret"), std::string::npos);
}

TEST_F(RedlockServers, APasswordThatIsWrongIsNamedAndAMinorityOfThemIsSurvived) {
  for (int i = 0; i < 3; ++i) {
    servers.emplace_back(RedisOptions{.settings = {"requirepass right" + std::to_string(i)}});
  }
  const auto url_of = [&](unsigned node, const std::string& password) {
    return "redis://:" + password + '@' + host(node);
  };
  auto a = open(target({url_of(0, "right0"), url_of(1, "wrong1"), url_of(2, "right2")}));
  EXPECT_TRUE(is_free_for(*a, request("job")));
  const auto lease =
      try_once(*open(target({url_of(0, "right0"), url_of(1, "wrong1"), url_of(2, "wrong2")})),
               request("job"));
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().code, Errc::denied);
  const std::string& message = lease.error().message;
  EXPECT_EQ(message.find(host(0)), std::string::npos) << message;
  EXPECT_NE(message.find(host(1)), std::string::npos) << message;
  EXPECT_NE(message.find(host(2)), std::string::npos) << message;
  EXPECT_EQ(message.find("wrong1"), std::string::npos) << message;
  EXPECT_EQ(servers[0].command("EXISTS", lock_of("job")), "0");
}

}  // namespace
}  // namespace dlock::test
