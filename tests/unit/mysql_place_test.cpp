#include <gtest/gtest.h>

#include "backends/mysql/place.hpp"
#include "util/host.hpp"

namespace dlock::mysql {
namespace {

Target target(const std::string& url, std::optional<std::string> prefix = {}) {
  return {.url = parse_url(url).value(), .prefix = std::move(prefix)};
}
Place place(const Target& wanted) {
  auto out = make_place(wanted);
  EXPECT_TRUE(out) << out.error().message;
  return out ? *out : Place{};
}
std::string refusal(const Target& wanted) {
  const auto out = make_place(wanted);
  EXPECT_FALSE(out);
  if (out) return "";
  EXPECT_EQ(out.error().code, Errc::invalid);
  return out.error().message;
}
bool names(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(MysqlPlace, HasDefaults) {
  const Place out = place(target("mysql:///app"));
  ASSERT_EQ(out.hosts.size(), 1U);
  EXPECT_EQ(out.hosts[0], (HostPort{"localhost", 3306}));
  EXPECT_EQ(out.location, "mysql://localhost:3306/app");
  EXPECT_EQ(out.shown, "mysql localhost:3306");
  EXPECT_EQ(out.user, util::user_name());
  EXPECT_EQ(out.password, "");
  EXPECT_EQ(out.database, "app");
  EXPECT_EQ(out.prefix, "dlock_");
  EXPECT_EQ(out.tls, Tls::preferred);
}

TEST(MysqlPlace, TakesAPrimaryAndItsStandbys) {
  const Place out = place(target("mysql-row://joe:s3cret@db1,db2:3307,[fd00::7]/app/"));
  EXPECT_EQ(out.shown, "mysql db1:3306,db2:3307,[fd00::7]:3306");
  EXPECT_EQ(out.location, "mysql-row://joe:***@db1:3306,db2:3307,[fd00::7]:3306/app");
  EXPECT_EQ(out.shown_host(out.hosts[1]), "mysql db2:3307");
  EXPECT_EQ(out.user, "joe");
  EXPECT_EQ(out.password, "s3cret");
  std::string many = "mysql-row://h0";
  for (int i = 1; i < 33; ++i) many += ",h" + std::to_string(i);
  EXPECT_TRUE(names(refusal(target(many + "/app")), "too many"));
}

TEST(MysqlPlace, WantsADatabase) {
  for (const char* url : {"mysql://h", "mysql://h/", "mysql://h//"}) {
    EXPECT_EQ(refusal(target(url)), "the database is missing: mysql://USER@HOST/DATABASE") << url;
  }
  for (const char* url :
       {"mysql://h/a/b", "mysql://h/a%0Ab", "mysql://h/a%5Cb", "mysql://h/a%20"}) {
    EXPECT_TRUE(names(refusal(target(url)), "no name of a database")) << url;
  }
  refusal(target("mysql://h/" + std::string(65, 'a')));
  EXPECT_EQ(place(target("mysql://h/my%20app-1")).database, "my app-1");
}

TEST(MysqlPlace, TakesASocket) {
  const Place out = place(target("mysql://joe@/app?socket=/run/mysqld/mysqld.sock"));
  EXPECT_EQ(out.socket, "/run/mysqld/mysqld.sock");
  ASSERT_EQ(out.hosts.size(), 1U);
  EXPECT_EQ(out.shown, "mysql /run/mysqld/mysqld.sock");
  EXPECT_EQ(out.shown_host(out.hosts[0]), out.shown);
  EXPECT_EQ(out.location, "mysql://joe@/app?socket=/run/mysqld/mysqld.sock");
  EXPECT_TRUE(names(refusal(target("mysql://h/app?socket=/run/s")), "has no host"));
  EXPECT_EQ(place(target("mysql://joe@localhost/app?socket=/run/s")).location,
            "mysql://joe@/app?socket=/run/s");
  EXPECT_TRUE(names(refusal(target("mysql:///app?socket=run/s")), "absolute"));
  EXPECT_TRUE(names(refusal(target("mysql:///app?socket=/s&tls=on")), "leave it out"));
  refusal(target("mysql:///app?socket=/" + std::string(120, 'a')));
}

TEST(MysqlPlace, TakesTls) {
  EXPECT_EQ(place(target("mysql://h/app")).tls, Tls::preferred);
  EXPECT_EQ(place(target("mysql:///app?socket=/s")).tls, Tls::off);
  EXPECT_EQ(place(target("mysql://h/app?tls=preferred")).tls, Tls::preferred);
  EXPECT_EQ(place(target("mysql://h/app?tls=off")).tls, Tls::off);
  EXPECT_EQ(place(target("mysql://h/app?tls=on")).tls, Tls::on);
  const Place out = place(target("mysql://h/app?tls=verify&ca=/etc/ca.pem"));
  EXPECT_EQ(out.tls, Tls::verify);
  EXPECT_EQ(out.ca, "/etc/ca.pem");
  // How we get there is no part of where the locks are.
  EXPECT_EQ(out.location, "mysql://h:3306/app");
  const Place ours = place(target("mysql://h/app?tls=on&cert=/c.pem&key=/k.pem"));
  EXPECT_EQ(ours.cert, "/c.pem");
  EXPECT_EQ(ours.key, "/k.pem");
  for (const char* wrong :
       {"tls=", "tls=yes", "tls=on&ca=/ca.pem", "ca=/ca.pem", "tls=verify&ca=ca.pem",
        "tls=verify&ca=", "tls=on&cert=/c.pem", "tls=on&key=/k.pem", "cert=/c.pem&key=/k.pem",
        "tls=off&cert=/c.pem&key=/k.pem", "tls=on&cert=c.pem&key=/k.pem"}) {
    refusal(target(std::string("mysql://h/app?") + wrong));
  }
}

TEST(MysqlPlace, RefusesWhatItDoesNotKnow) {
  EXPECT_TRUE(names(refusal(target("mysql://h/app?timeout=3")),
                    "mysql:// has socket, tls, ca, cert or key"));
  EXPECT_TRUE(names(refusal(target("mysql+unix:///app")), "write mysql://user@host/database"));
}

TEST(MysqlPlace, TakesAPrefixThatIsSafeInANameOfATable) {
  for (const char* prefix : {"", "a", "Locks_9"}) {
    EXPECT_EQ(place(target("mysql://h/app", prefix)).prefix, prefix);
  }
  for (const char* prefix : {"dlock:", "a`b", "a b", "a.b", "\xC3\xA4", "a\n"}) {
    EXPECT_TRUE(names(refusal(target("mysql://h/app", prefix)), "prefix")) << prefix;
  }
  EXPECT_EQ(place(target("mysql://h/app", std::string(32, 'a'))).prefix.size(), 32U);
  refusal(target("mysql://h/app", std::string(33, 'a')));
}

TEST(MysqlPlace, NeverShowsThePassword) {
  for (const char* url :
       {"mysql://joe:s3cret@h", "mysql://joe:s3cret@h/a/b", "mysql://joe:s3cret@h/a?x=1",
        "mysql+x://joe:s3cret@h/a", "mysql://joe:s3cret@h/a?tls=s"}) {
    EXPECT_FALSE(names(refusal(target(url)), "s3cret")) << url;
  }
}

}  // namespace
}  // namespace dlock::mysql
