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
  const Place out = place(target("mysql-table:///app"));
  ASSERT_EQ(out.hosts.size(), 1U);
  EXPECT_EQ(out.hosts[0], (HostPort{"localhost", 3306}));
  EXPECT_EQ(out.location, "mysql-table://localhost:3306/app");
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
  for (const char* url : {"mysql-table://h", "mysql-table://h/", "mysql-table://h//"}) {
    EXPECT_TRUE(names(refusal(target(url)), "mysql-table://user@host/database")) << url;
  }
  for (const char* url : {"mysql-table://h/a/b", "mysql-table://h/a%0Ab", "mysql-table://h/a%5Cb",
                          "mysql-table://h/a%20"}) {
    EXPECT_TRUE(names(refusal(target(url)), "no name of a database")) << url;
  }
  refusal(target("mysql-table://h/" + std::string(65, 'a')));
  EXPECT_EQ(place(target("mysql-table://h/my%20app-1")).database, "my app-1");
}

TEST(MysqlPlace, TakesASocket) {
  const Place out = place(target("mysql-table://joe@/app?socket=/run/mysqld/mysqld.sock"));
  EXPECT_EQ(out.socket, "/run/mysqld/mysqld.sock");
  ASSERT_EQ(out.hosts.size(), 1U);
  EXPECT_EQ(out.shown, "mysql /run/mysqld/mysqld.sock");
  EXPECT_EQ(out.shown_host(out.hosts[0]), out.shown);
  EXPECT_EQ(out.location, "mysql-table://joe@/app?socket=/run/mysqld/mysqld.sock");
  EXPECT_TRUE(names(refusal(target("mysql-table://h/app?socket=/run/s")), "one must go"));
  EXPECT_TRUE(names(refusal(target("mysql-table:///app?socket=run/s")), "absolute"));
  EXPECT_TRUE(names(refusal(target("mysql-table:///app?socket=/s&tls=on")), "leave it out"));
  refusal(target("mysql-table:///app?socket=/" + std::string(120, 'a')));
}

TEST(MysqlPlace, TakesTls) {
  EXPECT_EQ(place(target("mysql-table://h/app")).tls, Tls::preferred);
  EXPECT_EQ(place(target("mysql-table:///app?socket=/s")).tls, Tls::off);
  EXPECT_EQ(place(target("mysql-table://h/app?tls=preferred")).tls, Tls::preferred);
  EXPECT_EQ(place(target("mysql-table://h/app?tls=off")).tls, Tls::off);
  EXPECT_EQ(place(target("mysql-table://h/app?tls=on")).tls, Tls::on);
  const Place out = place(target("mysql-table://h/app?tls=verify&ca=/etc/ca.pem"));
  EXPECT_EQ(out.tls, Tls::verify);
  EXPECT_EQ(out.ca, "/etc/ca.pem");
  // How we get there is no part of where the locks are.
  EXPECT_EQ(out.location, "mysql-table://h:3306/app");
  const Place ours = place(target("mysql-table://h/app?tls=on&cert=/c.pem&key=/k.pem"));
  EXPECT_EQ(ours.cert, "/c.pem");
  EXPECT_EQ(ours.key, "/k.pem");
  for (const char* wrong :
       {"tls=", "tls=yes", "tls=on&ca=/ca.pem", "ca=/ca.pem", "tls=verify&ca=ca.pem",
        "tls=verify&ca=", "tls=on&cert=/c.pem", "tls=on&key=/k.pem", "cert=/c.pem&key=/k.pem",
        "tls=off&cert=/c.pem&key=/k.pem", "tls=on&cert=c.pem&key=/k.pem"}) {
    refusal(target(std::string("mysql-table://h/app?") + wrong));
  }
}

TEST(MysqlPlace, RefusesWhatItDoesNotKnow) {
  EXPECT_TRUE(names(refusal(target("mysql-table://h/app?timeout=3")), "may hold socket, tls"));
  EXPECT_TRUE(names(refusal(target("mysql-table+unix:///app")), "?socket=/path"));
}

TEST(MysqlPlace, TakesAPrefixThatIsSafeInANameOfATable) {
  for (const char* prefix : {"", "a", "Locks_9"}) {
    EXPECT_EQ(place(target("mysql-table://h/app", prefix)).prefix, prefix);
  }
  for (const char* prefix : {"dlock:", "a`b", "a b", "a.b", "\xC3\xA4", "a\n"}) {
    EXPECT_TRUE(names(refusal(target("mysql-table://h/app", prefix)), "prefix")) << prefix;
  }
  EXPECT_EQ(place(target("mysql-table://h/app", std::string(32, 'a'))).prefix.size(), 32U);
  refusal(target("mysql-table://h/app", std::string(33, 'a')));
}

TEST(MysqlPlace, NeverShowsThePassword) {
  for (const char* url : {"mysql-table://joe:s3cret@h", "mysql-table://joe:s3cret@h/a/b",
                          "mysql-table://joe:s3cret@h/a?x=1", "mysql-table+x://joe:s3cret@h/a",
                          "mysql-table://joe:s3cret@h/a?tls=s"}) {
    EXPECT_FALSE(names(refusal(target(url)), "s3cret")) << url;
  }
}

}  // namespace
}  // namespace dlock::mysql
