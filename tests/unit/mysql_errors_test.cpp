#include <gtest/gtest.h>

#include "backends/mysql/errors.hpp"

namespace dlock::mysql {
namespace {

Place place() {
  Place out;
  out.user = "app";
  out.password = "s3cret";
  out.database = "locks";
  out.tls = Tls::preferred;
  return out;
}
Error error(unsigned code, const std::string& text, const Place& at = place()) {
  return error_of(code, text, "mysql db1:3306", at);
}
std::string connecting(unsigned code, const std::string& text, const Place& at = place()) {
  const Error out = connect_error_of(code, text, system_error(code, text), "mysql db1:3306", at);
  EXPECT_EQ(out.code, Errc::unreachable);
  return out.message;
}

TEST(MysqlErrors, SayWhatAndWhere) {
  const Error out = error(1045, "Access denied for user 'app'@'h' (using password: YES)");
  EXPECT_EQ(out.code, Errc::denied);
  EXPECT_EQ(out.message,
            "mysql db1:3306: wrong password for user \"app\", or the user may not connect from "
            "this host (Access denied for user 'app'@'h' "
            "(using password: YES))");
  EXPECT_TRUE(error(1049, "Unknown database 'locks'")
                  .message.starts_with("mysql db1:3306: there is no database \"locks\" ("));
}

TEST(MysqlErrors, SortByWhatHelps) {
  for (const unsigned code :
       {1021U, 1040U, 1047U, 1053U, 1114U, 1129U, 1203U, 1205U, 1213U, 1226U,
        1317U, 1792U, 1836U, 1927U, 1969U, 2006U, 2013U, 2026U, 2055U, 3024U}) {
    EXPECT_EQ(error(code, "x").code, Errc::unreachable) << code;
  }
  for (const unsigned code : {1044U, 1045U, 1130U, 1142U, 1143U, 1227U, 1370U, 1698U, 1862U}) {
    EXPECT_EQ(error(code, "x").code, Errc::denied) << code;
  }
  for (const unsigned code : {1049U, 1064U, 1146U}) {
    EXPECT_EQ(error(code, "x").code, Errc::invalid) << code;
  }
  for (const char* option : {"--read-only", "--super-read-only", "--read-only=NO_LOCK"}) {
    const Error it = error(1290, std::string("The MySQL server is running with the ") + option +
                                     " option so it cannot execute this statement");
    EXPECT_EQ(it.code, Errc::unreachable) << option;
    EXPECT_NE(it.message.find("is it a replica?"), std::string::npos) << it.message;
  }
  const Error other =
      error(1290,
            "The MariaDB server is running with the NO_ENGINE_SUBSTITUTION option so it "
            "cannot execute this statement");
  EXPECT_EQ(other.code, Errc::unsupported);
  EXPECT_EQ(other.message.find("replica"), std::string::npos) << other.message;
  EXPECT_EQ(error(4242, "what is this").message, "mysql db1:3306: error 4242 (what is this)");
}

TEST(MysqlErrors, ShowTheServersTextSafely) {
  EXPECT_EQ(error(4242, "a\nb\x1b[2J\xff").message,
            "mysql db1:3306: error 4242 (a\\x0ab\\x1b[2J\\xff)");
  EXPECT_LT(error(4242, std::string(10'000, 'a')).message.size(), 300U);
  Place odd = place();
  odd.password = "5ecretOfMine";
  EXPECT_EQ(error(4242, "IDENTIFIED BY '5ecretOfMine'", odd).message.find("5ecret"),
            std::string::npos);
  odd.user = "a\nb";
  EXPECT_EQ(error(1045, "x", odd).message.find('\n'), std::string::npos);
}

TEST(MysqlErrors, SayPlainlyWhyThereIsNoConnection) {
  const std::string server = "mysql db1:3306: ";
  EXPECT_EQ(connecting(2002, "Can't connect to server on 'db1' (111)"),
            server + "connection refused");
  EXPECT_EQ(connecting(2003, "Can't connect to MySQL server on 'db1:3306' (111)"),
            server + "connection refused");
  EXPECT_EQ(connecting(2002, "Can't connect to server on 'db1' (110)"),
            server + "no answer within 5s; is this a MySQL or MariaDB server?");
  EXPECT_EQ(connecting(2002, "Can't connect to server on 'db1' (115)"),
            server + "no answer within 5s; is this a MySQL or MariaDB server?");
  EXPECT_EQ(connecting(2005, "Unknown server host 'db1' (-2)"), server + "no such host");
  EXPECT_EQ(connecting(2005, "Unknown server host 'db1' (-3)"),
            server + "the name server does not answer");
  EXPECT_EQ(connecting(2013,
                       "Lost connection to server at 'handshake: reading initial communication "
                       "packet', system error: 104"),
            server + "connection reset by peer");
  EXPECT_EQ(connecting(2013,
                       "Lost connection to MySQL server at 'reading initial communication "
                       "packet', system error: 0"),
            server + "it ended the connection before it said anything");
  Place local = place();
  local.socket = "/run/s";
  EXPECT_EQ(connecting(2002, "Can't connect to local server through socket '/run/s' (2)", local),
            server + "no such socket");
  EXPECT_EQ(system_error(1045, "x (111)"), std::nullopt);
  EXPECT_EQ(connect_error_of(1045, "x", {}, "mysql db1:3306", place()).code, Errc::denied);
  EXPECT_EQ(connecting(2013, "what (99999999999999999999)"),
            server + "the connection was lost (what (99999999999999999999))");
}

TEST(MysqlErrors, NameTheCaWhereTlsFails) {
  Place at = place();
  EXPECT_EQ(error(2026, "TLS/SSL error: bad", at).message,
            "mysql db1:3306: TLS failed; check the TLS of the server (?tls=off connects without "
            "encryption) (TLS/SSL error: bad)");
  at.tls = Tls::on;
  EXPECT_EQ(error(2026, "TLS/SSL error: bad", at).message,
            "mysql db1:3306: TLS failed (TLS/SSL error: bad)");
  at.tls = Tls::verify;
  EXPECT_NE(error(2026, "x", at).message.find("?ca=FILE"), std::string::npos);
  at.ca = "/etc/ca.pem";
  EXPECT_NE(error(2026, "x", at).message.find("/etc/ca.pem"), std::string::npos);
}

TEST(MysqlErrors, SayWhatAServerSaidBeforeTls) {
  const std::string before =
      "Received error packet before completion of TLS handshake. The authenticity of the following "
      "error cannot be verified: ";
  const auto full = refusal_before_tls(before + "1040 - Too many connections");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->code, 1040U);
  EXPECT_EQ(full->text, "Too many connections");
  for (const char* other : {"", "x", "99999 - x", "1040", "- x"}) {
    EXPECT_FALSE(refusal_before_tls(before + other)) << other;
  }
  EXPECT_FALSE(refusal_before_tls("verified: 1040 - x"));
}

// The server does not say that a login over TLS would be another matter.
TEST(MysqlErrors, SayThatALoginMayNeedTls) {
  Place at = place();
  const std::string may_not =
      "mysql db1:3306: wrong password for user \"app\", or the user may not connect from this host";
  EXPECT_EQ(error(1045, "x", at).message, may_not + " (x)");
  const std::string needs_tls = "mysql db1:3306: the user \"app\" may not log in";
  EXPECT_EQ(error(2061, "x", at).message, needs_tls + ", or only over TLS (x)");
  at.tls = Tls::off;
  EXPECT_EQ(error(1045, "x", at).message, may_not + ", or only over TLS; say ?tls=on (x)");
  EXPECT_EQ(error(2061, "x", at).message, needs_tls + ", or only over TLS; say ?tls=on (x)");
  at.socket = "/run/s";
  EXPECT_EQ(error(1045, "x", at).message, may_not + " (x)");
}

TEST(MysqlErrors, KnowWhatIsWorthSayingAgain) {
  Place place;
  for (const unsigned code : {1020U, 1205U, 1213U, 3058U}) {
    EXPECT_EQ(trouble_of(code, place), sql::Trouble::passing) << code;
  }
  for (const unsigned code : {1045U, 1062U, 1317U, 2006U}) {
    EXPECT_EQ(trouble_of(code, place), sql::Trouble::other) << code;
  }
  EXPECT_EQ(trouble_of(1146, place), sql::Trouble::no_table);
  *place.cluster = Place::Cluster::galera;
  EXPECT_EQ(trouble_of(1317, place), sql::Trouble::passing);
}

TEST(MysqlErrors, KnowWhatEndsAConnection) {
  for (const unsigned code :
       {1047U, 1053U, 1927U, 2006U, 2013U, 2014U, 2020U, 2055U, 4031U, 5014U}) {
    EXPECT_TRUE(ends_connection(code)) << code;
  }
  for (const unsigned code : {1045U, 1062U, 1064U, 1205U, 1213U, 1317U, 3024U}) {
    EXPECT_FALSE(ends_connection(code)) << code;
  }
}

}  // namespace
}  // namespace dlock::mysql
