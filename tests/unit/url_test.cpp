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

TEST(Url, NeverShowsItsPassword) {
  for (const char* text : {"redis://:secret@h:1/0", "redis://u:secret@h", "redis://u:se/secret@h/0",
                           "redis://u:a@secret@h", "mysql://u@h/db?password=secret"}) {
    const auto url = parse_url(text);
    ASSERT_TRUE(url) << text;
    EXPECT_EQ(url.value().redacted().find("secret"), std::string::npos) << url.value().redacted();
  }
}

TEST(Url, ABadOneIsNamedWithoutItsPassword) {
  for (const char* text :
       {"", "redis", "://h", "re dis://h", "redis://u:secret@h:0", "redis://u:secret@h:70000",
        "redis://u:secret@h:x", "redis://u:secret@[::1", "redis://u:secret@a b", "redis://h,,i",
        "redis://u:secret%zz@h", "redis://u:secret?ret@h", "redis://h/%00", "redis://h?a=1&a=2",
        "redis://h/#x"}) {
    const auto url = parse_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, Errc::invalid);
    EXPECT_EQ(url.error().message.find("secret"), std::string::npos) << url.error().message;
  }
}

TEST(HostPort, TakesABareIpv6Address) {
  EXPECT_EQ(parse_host_port("fe80::1").value(), (HostPort{"fe80::1", 0}));
  EXPECT_EQ(parse_host_port("[fe80::1]:6379").value(), (HostPort{"fe80::1", 6379}));
}

}  // namespace
}  // namespace dlock
