#include <gtest/gtest.h>

#include "backends/postgres/place.hpp"

namespace dlock::postgres {
namespace {

Result<Place> place_of(const std::string& url, std::optional<std::string> prefix = {}) {
  return make_place({.url = parse_url(url).value(), .prefix = std::move(prefix)});
}

std::string refusal_of(const std::string& url, std::optional<std::string> prefix = {}) {
  const auto place = place_of(url, std::move(prefix));
  return place ? "" : place.error().message;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(PostgresPlace, AUrlSaysWhere) {
  auto place = place_of("postgres://app:pw@db-1,db-2:5433/jobs");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->hosts, (std::vector<HostPort>{{"db-1", 5432}, {"db-2", 5433}}));
  EXPECT_EQ(place->user, "app");
  EXPECT_EQ(place->password, "pw");
  EXPECT_EQ(place->database, "jobs");
  EXPECT_EQ(place->prefix, "dlock_");
  EXPECT_EQ(place->shown, "postgres db-1:5432,db-2:5433");
  EXPECT_EQ(place->name, "postgres-table://db-1:5432,db-2:5433/jobs");
  EXPECT_FALSE(has(place->location, "pw"));
}

TEST(PostgresPlace, ASocketIsADirectoryOrAFile) {
  for (const char* socket : {"/run/postgresql", "/run/postgresql/.s.PGSQL.5432"}) {
    auto place = place_of(std::string("postgres-row://app@/jobs?socket=") + socket);
    ASSERT_TRUE(place) << socket;
    EXPECT_EQ(place->directory, "/run/postgresql");
    EXPECT_EQ(place->hosts.at(0).port, 5432);
    EXPECT_EQ(place->shown, "postgres /run/postgresql/.s.PGSQL.5432");
    EXPECT_EQ(place->name, "postgres-row:///jobs?socket=/run/postgresql/.s.PGSQL.5432");
  }
  auto other = place_of("postgres://app@/jobs?socket=/run/pg/.s.PGSQL.7000");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->hosts.at(0).port, 7000);
  EXPECT_TRUE(has(refusal_of("postgres://app@/jobs?socket=/run/.s.PGSQL.x"), "directory"));
  EXPECT_TRUE(has(refusal_of("postgres://app@db-1/jobs?socket=/run"), "no host"));
}

TEST(PostgresPlace, WhatFitsNothingIsRefused) {
  EXPECT_TRUE(has(refusal_of("postgres://db-1"), "database is missing"));
  EXPECT_TRUE(has(refusal_of("postgres://db-1/jobs?sslmode=yes"), "disable, prefer, require"));
  EXPECT_TRUE(has(refusal_of("postgres://db-1/jobs?sslrootcert=/ca"), "verify-full"));
  EXPECT_TRUE(has(refusal_of("postgres://db-1/jobs?sslcert=/c"), "belong together"));
  EXPECT_TRUE(has(refusal_of("postgres:///jobs?socket=/run&sslmode=require"), "protects nothing"));
  EXPECT_TRUE(has(refusal_of("postgres://db-1/jobs?pooler=transaction"), "session"));
  for (const char* prefix : {"Jobs_", "1jobs", "a-b", "a;b"}) {
    EXPECT_TRUE(has(refusal_of("postgres://db-1/jobs", prefix), "bad prefix")) << prefix;
  }
  EXPECT_EQ(refusal_of("postgres://db-1/jobs", ""), "");
}

}  // namespace
}  // namespace dlock::postgres
