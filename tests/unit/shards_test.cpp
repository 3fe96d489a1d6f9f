// Where keys are placed must never change: two versions that differ do not exclude each other.
#include "core/shards.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/file/lock_dir.hpp"
#include "backends/registry.hpp"
#include "cli/source.hpp"

namespace dlock {
namespace {

using Names = std::vector<std::string>;

constexpr unsigned kManyKeys = 20'000;

std::string key(unsigned i) { return "key-" + std::to_string(i); }

Names servers(unsigned count) {
  Names out;
  for (unsigned i = 1; i <= count; ++i) out.push_back("redis://r" + std::to_string(i) + ":6379/0");
  return out;
}

// What its backend calls it; none where that is not built in.
std::optional<Result<std::string>> place(const std::string& text) {
  auto url = parse_url(text);
  EXPECT_TRUE(url) << text;
  const BackendEntry* entry = cli::entry_of(*url, builtin_backends());
  EXPECT_NE(entry, nullptr) << text;
  if (entry->place == nullptr) return std::nullopt;
  return entry->place({.url = *url});
}

void are_called(const std::string& wanted, const Names& urls) {
  for (const std::string& url : urls) {
    const auto found = place(url);
    if (!found) continue;
    EXPECT_EQ(*found ? found->value() : found->error().message, wanted) << url;
  }
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
    for (unsigned i = 0; i < kManyKeys; ++i) ++found[shard_of(key(i), shards)];
    for (const unsigned keys : found)
      EXPECT_NEAR(keys, kManyKeys / count, kManyKeys / count / 10) << count;
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
    for (unsigned i = 0; i < kManyKeys; ++i) {
      const std::size_t now = shard_of(key(i), after);
      if (now == shard_of(key(i), before)) continue;
      ++moved;
      ASSERT_EQ(now, count) << "moved, and not to the new one";
    }
    EXPECT_NEAR(moved, kManyKeys / (count + 1), kManyKeys / (count + 1) / 10) << count;
  }
}

TEST(Shards, ADatabaseHasOneNameHoweverItIsWritten) {
  are_called("redis://h:6379/0",
             {"redis://h:6379/0", "redis://h", "redis://h/", "redis://h/00", "redis://H.:06379/0",
              "redis://u:p@h", "redis://:p@H:6379/0", "REDIS://h"});
  are_called("redis://h:6379/10", {"redis://h/10", "redis://h/010"});
  are_called("redis://localhost:6379/0", {"redis://localhost:6379/0", "redis://", "redis:///",
                                          "redis:///0", "redis://:p@", "redis://LOCALHOST"});
  are_called("redis://127.0.0.1:6379/0",
             {"redis://127.0.0.1", "redis://127.1", "redis://0x7f.0.0.1", "redis://0X7F.1",
              "redis://2130706433", "redis://0177.0.0.01", "redis://[::ffff:127.0.0.1]"});
  are_called("redis://[::1]:6379/0",
             {"redis://[::1]", "redis://[0:0:0:0:0:0:0:1]", "redis://[0::0001]:6379/0",
              "redis://0::1", "redis://[::1%eth0]"});
  are_called("redis://[fe80::1%eth0]:6379/0",
             {"redis://[fe80::1%eth0]", "redis://[FE80:0::1%eth0]"});
  are_called("redis:///run/s",
             {"redis+unix:///run/s", "redis+unix:///run/s?db=0", "redis+unix:///run/s?db=00",
              "redis+unix://u:p@/run//./s", "redis+unix:///run/./s"});
  are_called("redis:///run/s?db=2", {"redis+unix:///run/s?db=2", "redis+unix:///run/s?db=02"});
  are_called(
      "redlock://a:6379,b:6379,c:7000/0",
      {"redlock://a:6379,b:6379,c:7000/0", "redlock://c:7000,B,A.", "redlock://u:p@b,a,c:7000/00"});
  are_called("mysql-table://h:3306/app",
             {"mysql-table://h:3306/app", "mysql://h/app", "mysql://h//app/",
              "mysql://u:p@H/app?tls=on", "mysql://h,h./app"});
  are_called("mysql-table://h1:3306,h2:3307/app", {"mysql-table://h2:3307,h1/app"});
  are_called("mysql-table://localhost:3306/app", {"mysql-table:///app"});
  are_called("mysql-row://h:3306/app", {"mysql-row://h/app"});
  are_called("mysql-table:///app?socket=/run/s",
             {"mysql-table:///app?socket=/run/s", "mysql:////app/?socket=%2Frun//s"});
  are_called(
      "zookeeper://a:2181,b:2181/chroot",
      {"zookeeper://a:2181,b:2181/chroot", "zk://b,a/chroot/", "zk://u:p@B.,A,a:2181/chroot"});
  are_called("zookeeper://localhost:2181", {"zookeeper://", "zk://localhost/"});
  are_called("file:///dir", {"file:///dir", "file:///dir/", "file:////dir", "file:///./dir",
                             "file:///dir/.", "file:///%64ir"});
  are_called("file://" + file::default_path(), {"file://", "file://" + file::default_path()});
}

TEST(Shards, DifferentDatabasesHaveDifferentNames) {
  std::set<std::string> names;
  const Names urls{"redis://h",
                   "redis://h2",
                   "redis://h:6380",
                   "redis://h/1",
                   "redis+unix:///h",
                   "redis+unix:///H",
                   "redis+unix:///h?db=1",
                   "redlock://h",
                   "redlock://h,h2",
                   "redlock://h/1",
                   "file:///h",
                   "file:///H",
                   "zookeeper://h",
                   "zookeeper://h/a",
                   "zookeeper://h/A",
                   "mysql-table://h/a",
                   "mysql-table://h/A",
                   "mysql-row://h/a",
                   "mysql-version://h/a",
                   "mysql-table:///a?socket=/h",
                   "mysql-table:///a?socket=/H"};
  std::size_t count = 0;
  for (const std::string& url : urls) {
    const auto found = place(url);
    if (!found) continue;
    ++count;
    names.insert(found->value());
  }
  EXPECT_EQ(names.size(), count);
}

TEST(Shards, TlsIsNoPartOfTheName) {
  const auto found = place("rediss://u:other@h:6379/0?cacert=/x.pem");
  if (!found || !*found) GTEST_SKIP() << "no TLS for redis";
  EXPECT_EQ(found->value(), "redis://h:6379/0");
}

TEST(Shards, APlaceShowsNothingOfAUrlThatItRefuses) {
  for (const char* url : {"redis://h/secretpw",
                          "redis://h/-0",
                          "redis://h?secretpw=1",
                          "redis+unix:///s?db=secretpw",
                          "redis+unix:///s?db=1&secretpw=2",
                          "rediss://h?secretpw=/x",
                          "rediss://h?cert=secretpw",
                          "redlock://a,b/secretpw",
                          "redlock://a?secretpw",
                          "mysql://h/a/secretpw",
                          "mysql://h/a?tls=secretpw",
                          "mysql://h/a?secretpw=on",
                          "mysql:///a?socket=secretpw",
                          "zk://h/a//secretpw",
                          "zk://h/../secretpw",
                          "zk://h/zookeeper/secretpw",
                          "zk://h?secretpw",
                          "file://h/secretpw",
                          "file:///a?secretpw",
                          "file://secretpw@/a"}) {
    const auto found = place(url);
    if (!found) continue;
    ASSERT_FALSE(*found) << url << ": " << found->value();
    const std::string& said = found->error().message;
    EXPECT_EQ(said.find("secretpw"), std::string::npos) << url << ": " << said;
  }
}

}  // namespace
}  // namespace dlock
