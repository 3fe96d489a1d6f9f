// From URLs to servers, and what is shown of them.
#include <gtest/gtest.h>

#include "backends/redis/address.hpp"
#include "backends/redis/sentinel.hpp"

namespace dlock::redis {
namespace {

using namespace std::string_literals;
using Lines = std::vector<std::string>;

Target target(const std::string& url, const Lines& servers = {}) {
  Target out;
  if (looks_like_url(url)) {
    out.url = parse_url(url).value();
  } else {
    out.url.scheme = url;
  }
  for (const std::string& server : servers) out.servers.push_back(parse_url(server).value());
  return out;
}

Places places(const std::string& url, const Lines& servers = {}) {
  auto out = places_of(target(url, servers));
  EXPECT_TRUE(out) << (out ? "" : out.error().message);
  return out ? out.value() : Places();
}

std::string fault(const std::string& url, const Lines& servers = {}) {
  const auto out = places_of(target(url, servers));
  if (out) return "none";
  EXPECT_EQ(out.error().code, Errc::invalid);
  return out.error().message;
}

TEST(RedisAddress, OneServerIsFoundAsBefore) {
  const auto place = place_of(target("redis://app:secret@h/2"));
  ASSERT_TRUE(place);
  EXPECT_EQ(place.value().location, "redis://app:***@h:6379/2");
  EXPECT_EQ(place.value().prefix, "dlock:");
  const Address& address = place.value().address;
  EXPECT_EQ(address.host, (HostPort{"h", 6379}));
  EXPECT_EQ(address.user, "app");
  EXPECT_EQ(address.password, "secret");
  EXPECT_EQ(address.database, 2U);
  EXPECT_EQ(address.shown, "redis h:6379");
  EXPECT_EQ(place_of(target("redis")).value().location, "redis://localhost:6379/0");
  EXPECT_FALSE(place_of(target("redis://h1,h2")));
  EXPECT_FALSE(place_of(target("redis+ssh://h")));
}

TEST(RedisAddress, SentinelsHaveNothingOfWhatIsForTheMaster) {
  Target wanted =
      target("rediss+sentinel://app:secret@s1,s2:7000/mymaster/2?wait_replicas=1&cacert=/ca.pem");
  wanted.auth = "asks";
  const auto place = place_of(wanted);
  ASSERT_TRUE(place);
  EXPECT_EQ(place.value().location, "rediss+sentinel://app:***@s1:26379,s2:7000/mymaster/2");
  EXPECT_EQ(place.value().name, "redis+sentinel://s1:26379,s2:7000/mymaster/2");
  const Address& master = place.value().address;
  EXPECT_EQ(master.user, "app");
  EXPECT_EQ(master.password, "secret");
  EXPECT_EQ(master.database, 2U);
  EXPECT_EQ(master.shown, "redis mymaster");
  ASSERT_TRUE(master.tls && master.sentinels);
  EXPECT_EQ(master.sentinels->master, "mymaster");
  EXPECT_EQ(master.sentinels->replicas, 1U);
  ASSERT_EQ(master.sentinels->each.size(), 2U);
  const Address& second = master.sentinels->each[1];
  EXPECT_EQ(second.host, (HostPort{"s2", 7000}));
  EXPECT_EQ(second.user, "");
  EXPECT_EQ(second.password, "asks");
  EXPECT_EQ(second.database, 0U);
  EXPECT_EQ(second.shown, "sentinel s2:7000");
  EXPECT_EQ(second.tls.value().cacert, "/ca.pem");
}

TEST(RedisAddress, WhatAFailoverCanLoseIsSaidUnlessTheUrlKnowsIt) {
  const auto advice_for = [](const std::string& url) {
    return failover_advice(place_of(target(url)).value().address).has_value();
  };
  EXPECT_TRUE(advice_for("redis+sentinel://s1/mymaster"));
  EXPECT_FALSE(advice_for("redis+sentinel://s1/mymaster?wait_replicas=0"));
  EXPECT_FALSE(advice_for("redis+sentinel://s1/mymaster?wait_replicas=2"));
  EXPECT_FALSE(advice_for("redis://h1"));
}

TEST(RedisAddress, ServersOfOneUrlShareUserPasswordAndDatabase) {
  const Places all = places("redlock://app:secret@h1:7000,h2,[::1]:6380/3");
  EXPECT_EQ(all.location, "redlock://h1:7000,h2:6379,[::1]:6380/3");
  EXPECT_EQ(all.prefix, "dlock:");
  ASSERT_EQ(all.addresses.size(), 3U);
  for (const Address& address : all.addresses) {
    EXPECT_EQ(address.user, "app");
    EXPECT_EQ(address.password, "secret");
    EXPECT_EQ(address.database, 3U);
    EXPECT_FALSE(address.tls);
  }
  EXPECT_EQ(all.addresses[0].host, (HostPort{"h1", 7000}));
  EXPECT_EQ(all.addresses[1].host, (HostPort{"h2", 6379}));
  EXPECT_EQ(all.addresses[2].host, (HostPort{"::1", 6380}));
  EXPECT_EQ(all.addresses[2].shown, "redis [::1]:6380");
  EXPECT_EQ(places("redlock://h1,h2,h3").location, "redlock://h1:6379,h2:6379,h3:6379/0");
  EXPECT_EQ(places("redlock://h1,h2,h3/").location, "redlock://h1:6379,h2:6379,h3:6379/0");
  EXPECT_EQ(places("redlock://h1").location, "redlock://h1:6379/0");
}

TEST(RedisAddress, EachServerMayHaveAUrlOfItsOwn) {
  const Places all =
      places("redlock", {"redis://u1:p1@h1", "rediss://u2:p2@h2:6380/3?cacert=/x.pem",
                         "redis+unix:///run/r.sock", "redis+unix://:p4@/run/s.sock?db=4"});
  EXPECT_EQ(all.location,
            "redlock://h1:6379/0,h2:6380/3,redis+unix:///run/r.sock,redis+unix:///run/s.sock?db=4");
  ASSERT_EQ(all.addresses.size(), 4U);
  EXPECT_EQ(all.addresses[0].user, "u1");
  EXPECT_EQ(all.addresses[0].password, "p1");
  EXPECT_FALSE(all.addresses[0].tls);
  EXPECT_EQ(all.addresses[1].user, "u2");
  EXPECT_EQ(all.addresses[1].database, 3U);
  ASSERT_TRUE(all.addresses[1].tls);
  EXPECT_EQ(all.addresses[1].tls->cacert, "/x.pem");
  EXPECT_EQ(all.addresses[2].socket, "/run/r.sock");
  EXPECT_EQ(all.addresses[2].password, "");
  EXPECT_EQ(all.addresses[2].shown, "redis /run/r.sock");
  EXPECT_EQ(all.addresses[3].password, "p4");
  EXPECT_EQ(all.addresses[3].database, 4U);
  EXPECT_EQ(places("redlock", {"redis://h1/2", "rediss://h2/2"}).location,
            "redlock://h1:6379,h2:6379/2");
  EXPECT_EQ(places("redlock", {"redis://"}).location, "redlock://localhost:6379/0");
}

TEST(RedisAddress, WhatAServersUrlLeavesOpenIsSharedByAll) {
  const Places all = places("redlock://app:shared@/5",
                            {"redis://h1", "redis://own:its@h2/1", "redis://:its@h3/",
                             "redis://own@h4", "redis+unix:///s", "redis+unix:///t?db=0"});
  Lines found;
  for (const Address& address : all.addresses) {
    found.push_back(address.user + ' ' + address.password + ' ' + std::to_string(address.database));
  }
  EXPECT_EQ(found, (Lines{"app shared 5", "own its 1", " its 5", "own shared 5", "app shared 5",
                          "app shared 0"}));
}

TEST(RedisAddress, RedlockHasNoDefaultServer) {
  for (const char* none : {"redlock", "redlock://", "redlock:///2", "redlock://u:p@"}) {
    EXPECT_EQ(fault(none),
              "which servers? redlock has no default; name them with --server h1,h2,h3 or as "
              "redlock://h1,h2,h3");
  }
}

TEST(RedisAddress, TheSameServerTwiceIsRefusedByName) {
  const std::string why = " stands twice; each server counts once, whatever its database";
  EXPECT_EQ(fault("redlock://h1,h2,h1"), "redis h1:6379" + why);
  EXPECT_EQ(fault("redlock://h1,h2,H1:6379"), "redis H1:6379" + why);
  EXPECT_EQ(fault("redlock://[FE80::a],[fe80::A]:6379"), "redis [fe80::A]:6379" + why);
  EXPECT_EQ(fault("redlock://h1,h2,H1."), "redis H1.:6379" + why);
  EXPECT_EQ(fault("redlock://127.0.0.1,h2,127.1"), "redis 127.1:6379" + why);
  EXPECT_EQ(fault("redlock://[::1],[0:0::01]"), "redis [0:0::01]:6379" + why);
  EXPECT_EQ(fault("redlock", {"redis://u:secret@h1/0", "rediss://v:secret@h1/1"}),
            "redis h1:6379" + why);
  EXPECT_EQ(fault("redlock", {"redis+unix:///a", "redis+unix:///a?db=1"}), "redis /a" + why);
  EXPECT_EQ(fault("redlock", {"redis+unix:///a/b", "redis+unix:///a//b"}), "redis /a//b" + why);
  EXPECT_EQ(fault("redlock", {"redis+unix:///a", "redis+unix:///A"}), "none");
  EXPECT_EQ(fault("redlock://h1:1,h1:2,h2:1"), "none");
}

TEST(RedisAddress, MoreThan32ServersAreRefused) {
  const auto many = [](int count) {
    std::string url = "redlock://";
    for (int i = 0; i < count; ++i) url += (i > 0 ? ",h" : "h") + std::to_string(i);
    return url;
  };
  EXPECT_EQ(fault(many(32)), "none");
  EXPECT_EQ(fault(many(33)), "33 servers are too many; the most is 32");
  EXPECT_EQ(fault(many(5'000)), "5000 servers are too many; the most is 32");
}

TEST(RedisAddress, WhatMakesNoSenseIsRefusedAndNamesTheServer) {
  EXPECT_EQ(fault("redlock://h1,h2/x"),
            "server 1 of 2: the path of the URL must be the number of a database, as in "
            "redis://HOST/2");
  EXPECT_EQ(fault("redlock", {"redis://h1", "redis://h2/-0"}),
            "server 2 of 2: the path of the URL must be the number of a database, as in "
            "redis://HOST/2");
  EXPECT_EQ(fault("redlock://app@h1,h2"),
            "server 1 of 2: the password of the user in the URL is missing: use --password-file "
            "FILE, or password_file in the config file");
  EXPECT_EQ(
      fault("redlock", {"redis://h1", "redis+tls://h2"}),
      "server 2 of 2: unknown scheme \"redis+tls\"; write redis://host:6379/0, "
      "rediss://host:6379/0, redis+unix:///run/redis.sock, redis+sentinel://s1,s2,s3/mymaster or "
      "rediss+sentinel://s1,s2,s3/mymaster; rediss:// is for TLS, redlock:// for several servers");
  EXPECT_EQ(fault("redlock", {"redis+unix://"}),
            "server 1 of 1: the path of the socket is missing: redis+unix:///run/redis.sock");
  EXPECT_EQ(fault("redlock", {"redis://h1?cacert=/x"}),
            "server 1 of 1: unknown parameter behind the ? of the URL; redis:// has none; "
            "rediss:// is for TLS, redlock:// for several servers");
  const std::string for_each =
      "; for TLS or unix sockets list a rediss:// or redis+unix:// URL for each server with "
      "--server";
  EXPECT_EQ(
      fault("redlock+unix:///x"),
      "unknown scheme \"redlock+unix\"; write redlock://h1:6379,h2:6379,h3:6379/0" + for_each);
  EXPECT_EQ(fault("redlock://h1,h2?cacert=/x"),
            "unknown parameter behind the ? of the URL; redlock:// has none" + for_each);
  Target long_prefix = target("redlock://h1");
  long_prefix.prefix = std::string(201, 'x');
  EXPECT_FALSE(places_of(long_prefix));
}

TEST(RedisAddress, NoPasswordIsShown) {
  for (const Lines& servers :
       {Lines{"redis://u:secret@h1", "redis://:secret@h2/1", "redis+unix://u:secret@/s"},
        Lines{"redis://u:secret@h1/x"}, Lines{"redis://u:secret@h1?password=secret"},
        Lines{"redis+unix://u:secret@"}, Lines{"redis+x://u:secret@h"},
        Lines{"redis://u:secret@h", "redis://u:secret@h"},
        Lines{"redis+unix:///s?password=secret"}}) {
    for (const char* shared : {"redlock", "redlock://u:secret@/1", "redlock://u:secret@/x",
                               "redlock://u:secret@h?password=secret"}) {
      const auto out = places_of(target(shared, servers));
      std::string said = out ? out.value().location : out.error().message;
      if (out) {
        for (const Address& address : out.value().addresses) said += address.shown;
      }
      EXPECT_EQ(said.find("secret"), std::string::npos) << said;
    }
  }
}

TEST(RedisAddress, WhatStrangersWroteIsEscaped) {
  Target odd;
  odd.url.scheme = "redlock";
  odd.url.hosts = {{"a\x1b[31m", 1}, {"b\xE2\x80\xAE", 2}};
  const auto out = places_of(odd);
  ASSERT_TRUE(out);
  EXPECT_EQ(out.value().location, "redlock://a\\x1b[31m:1,b\\u202e:2/0");
  EXPECT_EQ(out.value().addresses[0].shown, "redis a\\x1b[31m:1");
}

TEST(RedisAddress, AFewServersAndEvenNumbersAreAdvisedAgainst) {
  const std::string end = "; redlock is for an odd number of them, 3 or more";
  EXPECT_EQ(advice(1), "1 server survives the failure of none" + end);
  EXPECT_EQ(advice(2), "2 servers survive the failure of none, as 1 does" + end);
  EXPECT_EQ(advice(3), std::nullopt);
  EXPECT_EQ(advice(4), "4 servers survive the failure of 1, as 3 do" + end);
  EXPECT_EQ(advice(5), std::nullopt);
  EXPECT_EQ(advice(6), "6 servers survive the failure of 2, as 5 do" + end);
  EXPECT_EQ(advice(0), std::nullopt);
}

}  // namespace
}  // namespace dlock::redis
