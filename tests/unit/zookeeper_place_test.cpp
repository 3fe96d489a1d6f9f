#include <gtest/gtest.h>

#include "backends/zookeeper/place.hpp"

namespace dlock::zookeeper {
namespace {

Target target(const std::string& url, std::optional<std::string> prefix = {}) {
  return {.url = parse_url(url).value(), .prefix = std::move(prefix)};
}
Place place(const Target& wanted) {
  auto out = place_of(wanted);
  EXPECT_TRUE(out) << out.error().message;
  return out ? *out : Place{};
}
std::string refusal(const Target& wanted) {
  const auto out = place_of(wanted);
  EXPECT_FALSE(out);
  if (out) return "";
  EXPECT_EQ(out.error().code, Errc::invalid);
  return out.error().message;
}

TEST(ZookeeperPlace, HasDefaults) {
  const Place out = place(target("zookeeper://"));
  ASSERT_EQ(out.hosts.size(), 1U);
  EXPECT_EQ(out.hosts[0], (HostPort{"localhost", 2181}));
  EXPECT_EQ(out.path_of("a/b"), "/dlock/a%2Fb");
  EXPECT_EQ(out.location, "zookeeper://localhost:2181");
}

TEST(ZookeeperPlace, TakesServersAndChroot) {
  const Place out = place(target("zookeeper://z1,z2:2182,[fd00::7]/app/locks/"));
  EXPECT_EQ(out.shown, "zookeeper z1:2181,z2:2182,[fd00::7]:2181");
  EXPECT_EQ(out.location, "zookeeper://z1:2181,z2:2182,[fd00::7]:2181/app/locks");
  EXPECT_EQ(out.path_of("job"), "/app/locks/dlock/job");
  EXPECT_EQ(out.chroot, "/app/locks");
}

TEST(ZookeeperPlace, TakesAnyRoot) {
  EXPECT_EQ(place(target("zookeeper://h", "/a/b")).path_of("job"), "/a/b/job");
  EXPECT_EQ(place(target("zookeeper://h", "/a/")).path_of("job"), "/a/job");
  EXPECT_EQ(place(target("zookeeper://h", "/")).path_of("job"), "/job");
  EXPECT_EQ(place(target("zookeeper://h/app", "")).path_of("job"), "/app/job");
}

TEST(ZookeeperPlace, RefusesWhatIsNoPath) {
  for (const char* prefix : {"dlock", "dlock:", "/a//b", "/a/../b", "/./a", "/..",
                             "/a\x01"
                             "b",
                             "/a\xFF", "/zookeeper", "/zookeeper/locks"}) {
    EXPECT_NE(refusal(target("zookeeper://h", prefix)).find("the prefix"), std::string::npos);
  }
  refusal(target("zookeeper://h", '/' + std::string(600, 'a')));
  EXPECT_NE(refusal(target("zookeeper://h/a/../b")).find("the path of the URL"), std::string::npos);
  EXPECT_EQ(place(target("zookeeper://h", "/zookeeper2")).root, "/zookeeper2");
}

TEST(ZookeeperPlace, RefusesWhatItDoesNotKnow) {
  EXPECT_NE(refusal(target("zookeeper+unix:///x")).find("unknown scheme"), std::string::npos);
  EXPECT_NE(refusal(target("zookeepers://h")).find("without TLS"), std::string::npos);
  EXPECT_NE(refusal(target("zookeeper://h?tls=1")).find("unknown parameter"), std::string::npos);
  EXPECT_NE(refusal(target("zookeeper://h?style=etcd")).find("curator, curator-rw or kazoo"),
            std::string::npos);
  EXPECT_EQ(place(target("zookeeper://h?style=kazoo")).style, Style::kazoo);
  EXPECT_EQ(place(target("zookeeper://h?style=kazoo")).location, "zookeeper://h:2181");
}

TEST(ZookeeperPlace, TakesAUserFromOnePlaceOnly) {
  Target wanted = target("zookeeper://h");
  wanted.auth = "app:s3cret";
  EXPECT_EQ(place(wanted).auth, "app:s3cret");
  EXPECT_EQ(place(wanted).location.find("s3cret"), std::string::npos);
  wanted.auth = "s3cret";
  EXPECT_EQ(refusal(wanted).find("s3cret"), std::string::npos);
  wanted = target("zookeeper://app:s3cret@h");
  EXPECT_EQ(place(wanted).auth, "app:s3cret");
  EXPECT_EQ(place(wanted).location, "zookeeper://app:***@h:2181");
  wanted.auth = "app:other";
  EXPECT_EQ(refusal(wanted).find("s3cret"), std::string::npos);
  refusal(target("zookeeper://app@h"));
  refusal(target("zookeeper://:s3cret@h"));
}

}  // namespace
}  // namespace dlock::zookeeper
