#include <gtest/gtest.h>

#include "backends/postgres/errors.hpp"

namespace dlock::postgres {
namespace {

Place place_of_test() {
  Place out;
  out.user = "app";
  out.password = "sesame";
  out.database = "jobs";
  out.prefix = "dlock_";
  return out;
}
const Place kPlace = place_of_test();

Error connecting(std::string_view text) {
  return connect_error_of(text, "postgres db:5432", kPlace);
}

TEST(PostgresErrors, WhatTheServerSaysOfALoginHasItsState) {
  const Error wrong = connecting(
      "connection to server at \"db\" (10.0.0.7), port 5432 failed: SCHWERWIEGEND:  28P01: "
      "Passwort-Authentifizierung fehlgeschlagen\nLOCATION:  auth_failed, auth.c:326\n");
  EXPECT_EQ(wrong.code, Errc::denied);
  EXPECT_EQ(wrong.message,
            "postgres db:5432: wrong password for user \"app\", or there is no such user "
            "(Passwort-Authentifizierung fehlgeschlagen)");
  const Error full = connecting("x failed: FATAL:  53300: sorry, too many clients already\n");
  EXPECT_TRUE(full.is_full);
  EXPECT_EQ(full.code, Errc::unreachable);
}

TEST(PostgresErrors, WhatLibpqSaysIsOneLine) {
  const Error refused = connecting(
      "connection to server at \"db\" (10.0.0.7), port 5432 failed: Connection refused\n"
      "\tIs the server running on that host and accepting TCP/IP connections?\n");
  EXPECT_EQ(refused.code, Errc::unreachable);
  EXPECT_EQ(refused.message, "postgres db:5432: connection refused");
  EXPECT_EQ(connecting("").message,
            "postgres db:5432: it ended the connection before it said anything");
}

TEST(PostgresErrors, AMessageHasNoPasswordAndNoControl) {
  const Error error = error_of("XX000", "sesame \x1b[31m", "postgres db:5432", kPlace);
  EXPECT_EQ(error.message.find("sesame"), std::string::npos);
  EXPECT_EQ(error.message.find('\x1b'), std::string::npos);
}

TEST(PostgresErrors, WhatPassesIsSaidAgain) {
  EXPECT_EQ(trouble_of("40001"), sql::Trouble::passing);
  EXPECT_EQ(trouble_of("42P01"), sql::Trouble::no_table);
  EXPECT_EQ(trouble_of("57014"), sql::Trouble::other);
  EXPECT_TRUE(ends_connection("57P01"));
  EXPECT_FALSE(ends_connection("23505"));
}

}  // namespace
}  // namespace dlock::postgres
