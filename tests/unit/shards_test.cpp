// Where keys are placed must never change: two versions that differ do not exclude each other.
#include "core/shards.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace dlock {
namespace {

using Names = std::vector<std::string>;

constexpr unsigned kKeys = 20'000;

std::string key(unsigned i) { return "key-" + std::to_string(i); }

Names servers(unsigned count) {
  Names out;
  for (unsigned i = 1; i <= count; ++i) out.push_back("redis://r" + std::to_string(i) + ":6379/0");
  return out;
}

const BackendEntry kRedis{
    .name = "redis", .tls_scheme = "rediss", .usual_port = 6'379, .usual_path = "/0"};
const BackendEntry kPlain{.name = "plain"};

std::string name(const BackendEntry& entry, const std::string& url) {
  const auto parsed = parse_url(url);
  EXPECT_TRUE(parsed) << url;
  return shard_name(entry, parsed.value());
}

// Computed by a program in another language, after the description in shards.cpp.
TEST(Shards, KeysAreWhereTheyHaveAlwaysBeen) {
  const Names keys{"job",   "nightly-report",      "a",     "b",     "c",     "tenant/42",
                   "Größe", std::string(255, 'x'), "job-1", "job-2", "job-3", "job-4"};
  const auto places = [&](const Names& shards) {
    std::vector<std::size_t> out;
    for (const std::string& one : keys) out.push_back(shard_of(one, shards));
    return out;
  };
  using Places = std::vector<std::size_t>;
  EXPECT_EQ(places({"file:///a", "file:///b"}), (Places{1, 1, 1, 0, 0, 0, 0, 0, 1, 0, 1, 1}));
  EXPECT_EQ(places({"mysql-table://h1:3306/app", "mysql-table://h2:3306/app",
                    "mysql-table://h3:3306/app"}),
            (Places{1, 0, 2, 1, 2, 2, 1, 1, 2, 0, 1, 0}));
  EXPECT_EQ(places(servers(8)), (Places{4, 4, 7, 3, 6, 1, 1, 0, 4, 2, 5, 3}));
}

TEST(Shards, EachGetsItsShareOfTheKeys) {
  for (const unsigned count : {1U, 2U, 3U, 5U, 8U}) {
    const Names shards = servers(count);
    std::vector<unsigned> found(count);
    for (unsigned i = 0; i < kKeys; ++i) ++found[shard_of(key(i), shards)];
    for (const unsigned keys : found) EXPECT_NEAR(keys, kKeys / count, kKeys / count / 10) << count;
  }
}

TEST(Shards, TheOrderOfTheListDoesNotMatter) {
  Names shards = servers(5);
  Names before;
  for (unsigned i = 0; i < 200; ++i) before.push_back(shards[shard_of(key(i), shards)]);
  while (std::next_permutation(shards.begin(), shards.end())) {
    for (unsigned i = 0; i < 200; ++i) ASSERT_EQ(shards[shard_of(key(i), shards)], before[i]);
  }
}

TEST(Shards, OneMoreTakesItsShareAndMovesNothingElse) {
  for (const unsigned count : {1U, 2U, 4U, 7U}) {
    const Names before = servers(count);
    const Names after = servers(count + 1);
    unsigned moved = 0;
    for (unsigned i = 0; i < kKeys; ++i) {
      const std::size_t now = shard_of(key(i), after);
      if (now == shard_of(key(i), before)) continue;
      ++moved;
      ASSERT_EQ(now, count) << "moved, and not to the new one";
    }
    EXPECT_NEAR(moved, kKeys / (count + 1), kKeys / (count + 1) / 10) << count;
  }
}

TEST(Shards, HowToGetInIsNoPartOfTheName) {
  const std::string plain = name(kRedis, "redis://h:6379/0");
  EXPECT_EQ(plain, "redis://h:6379/0");
  for (const char* url : {"redis://h", "redis://h/", "redis://u:p@h", "redis://:p@H:6379/0",
                          "rediss://u:other@h:6379/0?cacert=/x.pem", "redis://h?password=p"}) {
    EXPECT_EQ(name(kRedis, url), plain) << url;
  }
  for (const char* url : {"redis://h2", "redis://h:6380", "redis://h/1", "redis://h,h2"}) {
    EXPECT_NE(name(kRedis, url), plain) << url;
  }
  EXPECT_EQ(name(kPlain, "plain://b,a:2/db/"), name(kPlain, "plain://a:2,b/db"));
  EXPECT_EQ(name(kPlain, "plain:///a"), "plain:///a");
  EXPECT_EQ(name(kPlain, "plain://"), "plain://");
}

TEST(Shards, BehindAUnixSocketTheQuerySaysWhichDatabase) {
  EXPECT_EQ(name(kRedis, "redis+unix:///run/r?db=2"), "redis:///run/r?db=2");
  EXPECT_NE(name(kRedis, "redis+unix:///run/r?db=2"), name(kRedis, "redis+unix:///run/r?db=3"));
  EXPECT_NE(name(kPlain, "plain:///db?socket=/a"), name(kPlain, "plain:///db?socket=/b"));
}

}  // namespace
}  // namespace dlock
