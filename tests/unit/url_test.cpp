#include "core/url.hpp"

#include <gtest/gtest.h>

namespace dlock {
namespace {

TEST(Url, IsTakenApart) {
  const auto url = parse_url("Redis://app:p%40ss@h1:6379,[::1]:7000,h3/2?socket=%2Ftmp%2Fs");
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_EQ(url.value().scheme, "redis");
  EXPECT_EQ(url.value().user, "app");
  EXPECT_EQ(url.value().password, "p@ss");
  EXPECT_EQ(url.value().hosts, (std::vector<HostPort>{{"h1", 6379}, {"::1", 7000}, {"h3", 0}}));
  EXPECT_EQ(url.value().path, "/2");
  EXPECT_EQ(url.value().query.at("socket"), "/tmp/s");
}

TEST(Url, AFileHasNoHost) {
  const auto url = parse_url("file:///var/lock/my%20jobs");
  ASSERT_TRUE(url);
  EXPECT_TRUE(url.value().hosts.empty());
  EXPECT_EQ(url.value().path, "/var/lock/my jobs");
}

TEST(Url, ThePathOfAFileMayHoldAnAt) {
  const auto url = parse_url("rediss://h?cacert=/home/me@site/ca.pem&key=/k@y");
  ASSERT_TRUE(url);
  EXPECT_EQ(url.value().query.at("cacert"), "/home/me@site/ca.pem");
  EXPECT_TRUE(parse_url("mysql://u@h/db?tls=verify&ca=/home/me@site/ca.pem"));
}

TEST(Url, NeverShowsItsPassword) {
  for (const char* text : {"redis://:secret@h:1/0", "redis://u:secret@h", "redis://u:se/secret@h/0",
                           "redis://u:a@secret@h", "mysql://u@h/db?password=secret"}) {
    const auto url = parse_url(text);
    ASSERT_TRUE(url) << text;
    EXPECT_EQ(url.value().redacted().find("secret"), std::string::npos) << url.value().redacted();
  }
}

TEST(Url, ABadOneIsNamedWithoutItsPassword) {
  for (const char* text : {"",
                           "redis",
                           "://h",
                           "re dis://h",
                           "redis://u:secret@h:0",
                           "redis://u:secret@h:70000",
                           "redis://u:secret@h:x",
                           "redis://u:secret@[::1",
                           "redis://u:secret@a b",
                           "redis://h,,i",
                           "redis://u:secret%zz@h",
                           "redis://u:secret?ret@h",
                           "redis://h/%00",
                           "redis://h?a=1&a=2",
                           "redis://h/#x",
                           "redis://u:secret",
                           "redis://app:12?secret@db1/0",
                           "redis://u:12?a=secret@h",
                           "redis://h/?x=@secret",
                           "redis://h?secret=1&secret=2",
                           "redis://h?secret%zz",
                           "redis://h?=secret",
                           "redis://h/secret%zz",
                           "redis://[secret",
                           "redis://[::1]secret",
                           "redis://h,u:secret",
                           "redis://u:secret,i",
                           "redis://secret h",
                           "redis://u:secret%40h",
                           "secret@://h",
                           "u:secret@h",
                           "redis:secret",
                           "redis://u:a:secret",
                           "redis://[secret]:6379",
                           "redis://app%3Asecret%40h:1/0",
                           "redis://app%3Asecret@h:1/0",
                           "redis://a:secret@h1,b:secret@h2",
                           "redis://app;secret",
                           "redis://h;password=secret",
                           "redis://h\\secret",
                           "redis://[::1%a:secret]"}) {
    const auto url = parse_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, Errc::invalid);
    EXPECT_EQ(url.error().message.find("secret"), std::string::npos) << url.error().message;
  }
  for (const char* text :
       {"u:secret", "u:secret@h", "u@secret", "u:se:secret", "[secret]", "[::secret]:1", "[secret",
        "[::1]secret", "secret/0", "h:70000secret", "secret h", "secret?x"}) {
    const auto host = parse_host_port(text);
    ASSERT_FALSE(host) << text;
    EXPECT_EQ(host.error().message.find("secret"), std::string::npos) << host.error().message;
  }
}

TEST(Url, ABadOneSaysWhichPartIsWrong) {
  const auto fault = [](std::string_view text) { return parse_url(text).error().message; };
  EXPECT_EQ(fault("redis"), "not a URL: it must begin with scheme://");
  EXPECT_EQ(fault("redis://u:pw"), "bad port in the URL: must be 1 to 65535");
  EXPECT_EQ(fault("redis://a,,b"), "no host name in the URL");
  EXPECT_EQ(fault("redis://a b"), "bad host name in the URL: letters, digits, and - . _ only");
  EXPECT_EQ(fault("redis://u:p@h1,v:q@h2"),
            "a URL has one user for all its hosts; in a password an @ is written %40, a comma %2C");
  EXPECT_EQ(fault("mysql://u%3Apw@h/db"),
            "the : between user and password of the URL is not written %3A");
  EXPECT_EQ(fault("redis://[::1"), "a [ without a ] in the URL");
  EXPECT_EQ(fault("redis://u:a:b"), "bad address in the URL: must be as in [fe80::1]:6379");
  EXPECT_EQ(fault("redis://[::1]6379"), "only :PORT can follow the ] in the URL");
  EXPECT_EQ(fault("redis://app:12?pw@db1/0"),
            "an @ behind a ? in the URL: a ? in a password is written %3F, an @ in the query %40");
  EXPECT_EQ(fault("redis://h?a=1&a=2"), "a name stands twice in the query of the URL");
  EXPECT_EQ(parse_host_port("h:0").error().message, "bad port in the address: must be 1 to 65535");
}

TEST(HostPort, TakesABareIpv6Address) {
  EXPECT_EQ(parse_host_port("fe80::1").value(), (HostPort{"fe80::1", 0}));
  EXPECT_EQ(parse_host_port("[fe80::1]:6379").value(), (HostPort{"fe80::1", 6379}));
  EXPECT_EQ(parse_host_port("[fe80::1%eth0]").value(), (HostPort{"fe80::1%eth0", 0}));
}

TEST(HostPort, TakesTheScopeOfAnAddressAsRfc6874WritesIt) {
  EXPECT_EQ(parse_host_port("[fe80::1%25eth0]:6379").value(), (HostPort{"fe80::1%eth0", 6379}));
  EXPECT_EQ(parse_host_port("[fe80::1%2525]").value(), (HostPort{"fe80::1%25", 0}));
  EXPECT_EQ(parse_host_port("[fe80::1%25]").value(), (HostPort{"fe80::1%25", 0}));  // the bare 25
  EXPECT_EQ(parse_url("redis://[fe80::1%25eth0]:6379").value().hosts.front().host, "fe80::1%eth0");
}

}  // namespace
}  // namespace dlock
