// Several databases as one: who is asked, and what is said when one of them is down.
#include "core/sharded_backend.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/shards.hpp"

namespace dlock {
namespace {

using Strings = std::vector<std::string>;

// The databases behind all backends of this test, by host.
struct Database {
  std::set<std::string> locks;
  unsigned opened = 0;
  bool refuses_to_open = false;
  std::optional<Error> fault = {};
};
std::map<std::string, Database> databases;

class Fake final : public Backend {
 public:
  explicit Fake(std::string host) : host_(std::move(host)), its_(databases[host_]) {}
  std::string location() const override { return "fake://" + host_ + "/opened"; }
  Result<std::unique_ptr<Lease>> acquire(const Request& request, const Wait&) override {
    if (its_.fault) return *its_.fault;
    its_.locks.insert(request.key);
    return Error{Errc::busy, "noted"};
  }
  Result<std::vector<LockInfo>> list(std::string_view prefix, Deadline) override {
    if (its_.fault) return *its_.fault;
    std::vector<LockInfo> out;
    for (const std::string& key : its_.locks) {
      if (key.starts_with(prefix)) out.push_back({.key = key});
    }
    return out;
  }
  Result<LockInfo> inspect(std::string_view key, Deadline) override {
    if (its_.fault) return *its_.fault;
    LockInfo info{.key = std::string(key)};
    if (its_.locks.contains(info.key)) info.holders.emplace_back();
    return info;
  }
  Result<bool> force_release(std::string_view key, std::string_view, const Reason&,
                             Deadline) override {
    if (its_.fault) return *its_.fault;
    return its_.locks.erase(std::string(key)) > 0;
  }

 private:
  const std::string host_;
  Database& its_;
};

Result<std::unique_ptr<Backend>> open_fake(const Target& target, Deadline, Cancel) {
  const std::string host = target.url.hosts.at(0).host;
  ++databases[host].opened;
  if (databases[host].refuses_to_open) return Error{Errc::denied, host + ": access denied"};
  return std::make_unique<Fake>(host);
}

Result<std::string> place_of_fake(const Target& target) {
  return "fake://" + target.url.hosts.at(0).host;
}

const BackendEntry kFake{.name = "fake", .place = place_of_fake, .open = open_fake};

std::unique_ptr<Backend> opened(const Strings& urls) {
  Target target;
  for (const std::string& url : urls) {
    target.shards.push_back({.url = parse_url(url).value()});
  }
  auto backend = open_backend(kFake, target, kNever, Cancel());
  return backend ? std::move(*backend) : nullptr;
}

Strings keys_of(const std::vector<LockInfo>& locks) {
  Strings out;
  for (const LockInfo& lock : locks) out.push_back(lock.key);
  return out;
}

class Sharded : public testing::Test {
 protected:
  void SetUp() override { databases = {{"a", {}}, {"b", {}}, {"c", {}}}; }
  // With a known key in each: "a" holds a1, and so on.
  static void fill() {
    const Strings names{"fake://a", "fake://b", "fake://c"};
    for (int i = 0; i < 100; ++i) {
      const std::string key = "key-" + std::to_string(100 + i);
      databases[std::string(1, static_cast<char>('a' + shard_of(key, names)))].locks.insert(key);
    }
  }
  static std::string key_of(const std::string& host) { return *databases[host].locks.begin(); }
  static Strings opened_hosts() {
    Strings out;
    for (const auto& [host, database] : databases) {
      if (database.opened > 0) out.push_back(host);
    }
    return out;
  }

  std::unique_ptr<Backend> backend = opened({"fake://b", "fake://u:secret@c", "fake://a"});
};

TEST_F(Sharded, OnlyTheShardOfTheKeyIsOpenedAndOnlyOnce) {
  fill();
  EXPECT_EQ(opened_hosts(), Strings{});
  const std::string key = key_of("b");
  EXPECT_EQ(backend->inspect(key, kNever).value().holders.size(), 1U);
  EXPECT_FALSE(backend->acquire({.key = key}, {}));
  EXPECT_TRUE(backend->force_release(key, "id", {"why"}, kNever).value());
  EXPECT_FALSE(backend->force_release(key, "id", {"why"}, kNever).value());
  EXPECT_EQ(opened_hosts(), Strings{"b"});
  EXPECT_EQ(databases["b"].opened, 1U);
}

TEST_F(Sharded, AllKeysGoSomewhereAndTheListHasThemAll) {
  Strings keys;
  for (int i = 100; i < 200; ++i) keys.push_back("key-" + std::to_string(i));
  for (const std::string& key : keys) {
    EXPECT_EQ(backend->acquire({.key = key}, {}).error().code, Errc::busy);
  }
  for (const auto& [host, database] : databases) EXPECT_GT(database.locks.size(), 15U) << host;
  EXPECT_EQ(keys_of(backend->list("", kNever).value()), keys);
  EXPECT_EQ(keys_of(backend->list("key-15", kNever).value()),
            Strings(keys.begin() + 50, keys.begin() + 60));
}

TEST_F(Sharded, TheListShowsWhatItCanAndSaysWhatIsMissing) {
  fill();
  databases["b"].fault = Error{Errc::unreachable, "fake b: connection refused"};
  const auto found = backend->list_reachable("", kNever);
  ASSERT_TRUE(found);
  EXPECT_EQ(found.value().locks.size(), databases["a"].locks.size() + databases["c"].locks.size());
  ASSERT_EQ(found.value().missing.size(), 1U);
  EXPECT_EQ(found.value().missing[0].code, Errc::unreachable);
  EXPECT_EQ(found.value().missing[0].message,
            "the locks of shard fake://b/opened are missing: fake b: connection refused");
  const auto all = backend->list("", kNever);
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, Errc::unreachable);
}

TEST_F(Sharded, AListOfNothingButFailuresIsAFailure) {
  for (auto& [host, database] : databases) database.refuses_to_open = true;
  const auto found = backend->list_reachable("", kNever);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::denied);
  for (const char* host : {"a: ", "b: ", "c: "}) {
    EXPECT_NE(found.error().message.find(host), std::string::npos) << found.error().message;
  }
  EXPECT_EQ(found.error().message.find("secret"), std::string::npos) << found.error().message;
}

TEST_F(Sharded, AFailureOfOneIsToldAsThatAndSparesTheOthers) {
  fill();
  databases["a"].fault = Error{Errc::unreachable, "fake a: connection refused"};
  databases["b"].refuses_to_open = true;
  const std::string of_a = key_of("a");
  const std::string of_b = key_of("b");
  EXPECT_EQ(backend->inspect(of_a, kNever).error().message,
            "fake a: connection refused; this is the shard of \"" + of_a + "\", one of 3");
  EXPECT_EQ(backend->acquire({.key = of_b}, {}).error().message,
            "b: access denied; this is the shard of \"" + of_b + "\", one of 3");
  EXPECT_TRUE(backend->inspect(key_of("c"), kNever));
  databases["b"].refuses_to_open = false;
  EXPECT_EQ(backend->acquire({.key = of_b}, {}).error().message, "noted");
}

TEST_F(Sharded, LocationsHaveNoSecretAndAreTheSameForEveryOrder) {
  fill();
  EXPECT_EQ(backend->location(), "fake://a + fake://b + fake://u:***@c");
  EXPECT_EQ(opened({"fake://u:secret@c", "fake://a", "fake://b"})->location(), backend->location());
  EXPECT_EQ(backend->location_of(key_of("c")), "fake://u:***@c");
  EXPECT_TRUE(backend->inspect(key_of("c"), kNever));
  EXPECT_EQ(backend->location_of(key_of("c")), "fake://c/opened");
}

TEST_F(Sharded, ALockOnAnotherShardThanItsOwnIsWarnedOf) {
  fill();
  const auto warnings = [&] {
    testing::internal::CaptureStderr();
    EXPECT_TRUE(backend->list_reachable("", kNever));
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(warnings(), "");
  const std::string stray = key_of("a");
  databases["b"].locks.insert(stray);
  const std::string said = warnings();
  EXPECT_NE(said.find("\"" + stray + "\" is in fake://b/opened, "), std::string::npos) << said;
  databases["b"].locks.insert(databases["a"].locks.begin(), databases["a"].locks.end());
  const std::string more = " and " + std::to_string(databases["a"].locks.size() - 1) + " more are";
  EXPECT_NE(warnings().find(more), std::string::npos);
}

TEST_F(Sharded, WithoutShardsItIsTheServiceItself) {
  const auto plain = open_backend(kFake, {.url = parse_url("fake://a").value()}, kNever, Cancel());
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain.value()->location_of("job"), "fake://a/opened");
  const auto found = plain.value()->list_reachable("", kNever);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found.value().missing.empty());
}

}  // namespace
}  // namespace dlock
