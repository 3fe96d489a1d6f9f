#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "backends/redis/names.hpp"

namespace dlock::redis {
namespace {

// As a cluster hashes a name.
std::string hashed_part(const std::string& name) {
  const auto open = name.find('{');
  if (open == std::string::npos) return name;
  const auto close = name.find('}', open + 1);
  if (close == std::string::npos || close == open + 1) return name;
  return name.substr(open + 1, close - open - 1);
}

std::vector<std::string> parts(const Names& names) {
  return {names.counter,        names.owner,           names.queue,
          names.waiter + "id1", names.revoked + "id1", names.channels + "id1"};
}

TEST(RedisNames, TheLockHasTheBareNameAndTheRestItsHashTag) {
  const Names names = names_of("dlock:", "job");
  EXPECT_EQ(names.lock, "dlock:job");
  EXPECT_EQ(names.counter, "{dlock:job}:fence");
  EXPECT_EQ(names.owner, "{dlock:job}:owner");
  EXPECT_EQ(names.queue, "{dlock:job}:queue");
  EXPECT_EQ(names.waiter, "{dlock:job}:waiter:");
  EXPECT_EQ(names.revoked, "{dlock:job}:revoked:");
  EXPECT_EQ(names.channels, "{dlock:job}:to:");
  EXPECT_EQ(names_of("", "job").lock, "job");
}

TEST(RedisNames, ATagOfTheKeyItselfIsUsed) {
  const Names names = names_of("dlock:", "a{user1}b");
  EXPECT_EQ(names.counter, "{user1}:fence:dlock:a{user1}b");
  EXPECT_EQ(names.waiter, "{user1}:waiter:dlock:a{user1}b:");
}

TEST(RedisNames, AllPartsOfALockShareItsSlotWhereThatIsPossible) {
  for (const std::string key : {"job", "a{b}c", "{b}", "{a}{b}", "x{{a}}", "a}b{c}", "{", "a{b"}) {
    const Names names = names_of("dlock:", key);
    for (const std::string& part : parts(names)) {
      EXPECT_EQ(hashed_part(part), hashed_part(names.lock)) << part;
    }
  }
}

TEST(RedisNames, DifferentLocksShareNoName) {
  std::set<std::string> seen;
  std::size_t count = 0;
  for (const std::string prefix : {"dlock:", ""}) {
    for (const std::string key : {"job", "{job}", "{job}x", "x{job}", "{}", "{}job", "}job{",
                                  "{{job}}", "job:owner", "Job", "{dlock:job}", "{dlock:job}:"}) {
      const Names names = names_of(prefix, key);
      seen.insert(names.lock);
      ++count;
      for (const std::string& part : parts(names)) {
        seen.insert(part);
        ++count;
      }
    }
  }
  EXPECT_EQ(seen.size(), count);
}

TEST(RedisNames, WhatBelongsToALockIsKnownAndALockIsNotTakenForIt) {
  for (const std::string key : {"job", "a{b}c", "{}", "{}job"}) {
    const Names names = names_of("dlock:", key);
    EXPECT_FALSE(belongs_to_a_lock(names.lock, "dlock:")) << names.lock;
    auto all = parts(names);
    all.pop_back();  // a channel is no key
    for (const std::string& part : all) EXPECT_TRUE(belongs_to_a_lock(part, "dlock:")) << part;
  }
  for (const std::string name :
       {"dlock:job:fence", "job", "{job}", "{job}:other", "{job}:owners"}) {
    EXPECT_FALSE(belongs_to_a_lock(name, "")) << name;
  }
}

RecordName number(const std::string& name) { return {RecordKind::number, name, ""}; }
RecordName mark(const std::string& key, const std::string& period) {
  return {RecordKind::mark, key, period};
}

TEST(RedisNames, CountersAreNoLocksAndHaveNamesOfTheirOwn) {
  EXPECT_EQ(record_key("dlock:", number("job")), "{dlock:job}:number");
  EXPECT_EQ(record_key("dlock:", number("a{user1}b")), "{dlock:a%7Buser1%7Db}:number");
  EXPECT_EQ(record_key("dlock:", number("a%7B")), "{dlock:a%257B}:number");
  // Or it would be the fencing token of a lock.
  EXPECT_NE(record_key("dlock:", number("x}:fence:dlock:{dlock:x")),
            names_of("dlock:", "{dlock:x}:number").counter);
  EXPECT_EQ(record_key("dlock:", number("")), "{dlock:}:workers");
  std::set<std::string> seen;
  for (const std::string key :
       {"", "job", "{job}", "a}b", "{}", "job}:number", "{dlock:job}:number"}) {
    const Names lock = names_of("dlock:", key);
    EXPECT_TRUE(seen.insert(record_key("dlock:", number(key))).second) << key;
    EXPECT_TRUE(seen.insert(lock.lock).second) << key;
    for (const std::string& part : parts(lock)) EXPECT_TRUE(seen.insert(part).second) << part;
  }
  for (const std::string prefix : {"", "dlock:", "{app}:"}) {
    EXPECT_TRUE(belongs_to_a_lock(record_key(prefix, number("job")), prefix)) << prefix;
    EXPECT_TRUE(belongs_to_a_lock(record_key(prefix, number("")), prefix)) << prefix;
  }
}

TEST(RedisNames, MarksAreNoLocksAndHaveNamesOfTheirOwn) {
  EXPECT_EQ(record_key("dlock:", mark("job", "")), "{dlock:job}:done:");
  EXPECT_EQ(record_key("dlock:", mark("job", "2026-11-22")), "{dlock:job}:done:2026-11-22");
  EXPECT_EQ(record_key("dlock:", mark("a{b}", "2026-W47")), "{b}:done:dlock:a{b}:2026-W47");
  for (const std::string prefix : {"", "dlock:", "{app}:", "{app}"}) {
    std::set<std::string> seen;
    for (const std::string key :
         {"job", "job:2026-11-22", "a{b}", "a{b}:2026-11-22", "a{b}:", "2026-11-22:a{b}", "b",
          "a}b", "{}", "done", "x}:done:", "x}:done:y", "{x}:done:", "{x}:done:y", "{a}:done:a:"}) {
      EXPECT_TRUE(seen.insert(names_of(prefix, key).lock).second) << key;
      for (const std::string period : {"", "2026-11-22", "2026-W47", "a", "-"}) {
        const std::string name = record_key(prefix, mark(key, period));
        EXPECT_TRUE(mark_of_key(name, prefix) == mark(key, period)) << name;
        EXPECT_TRUE(belongs_to_a_lock(name, prefix)) << name;
        // Below a prefix of "" anything may be a key.
        EXPECT_TRUE(seen.insert(name).second || prefix.empty()) << name;
      }
    }
  }
  for (const char* name :
       {"", "{", "{}:done:", "{dlock:}:done:", "{dlock:job}:done", "{dlock:job}:done:a_b",
        "{dlock:job}:done:12345678901234567", "{other:job}:done:", "{x}:done:dlock:job:",
        "{dlock:job}:done:dlock:job:", "x{dlock:job}:done:", "{dlock:job}:owner"}) {
    EXPECT_FALSE(mark_of_key(name, "dlock:")) << name;
  }
}

TEST(RedisNames, AQueueNamesItsLock) {
  for (const std::string key : {"job", "a{b}c", "{}", "{}job", "a}:queue", "{x}:queue:y"}) {
    const Names names = names_of("dlock:", key);
    EXPECT_EQ(lock_of_queue(names.queue), names.lock);
    EXPECT_EQ(lock_of_queue(names.owner), "");
  }
  for (const char* name : {"", "{", "{}", "}:queue", "{a}:queues", "{a}:queue:b"}) {
    EXPECT_EQ(lock_of_queue(name), "") << name;
  }
}

TEST(RedisNames, BelowAHashTagAKeyMayBeCalledLikeAPart) {
  for (const std::string key : {"fence", "owner", "owner:job", "to:x"}) {
    const Names names = names_of("{app}:", key);
    EXPECT_FALSE(belongs_to_a_lock(names.lock, "{app}:")) << names.lock;
    EXPECT_TRUE(belongs_to_a_lock(names.owner, "{app}:")) << names.owner;
    EXPECT_TRUE(belongs_to_a_lock(names.waiter + "0f3a", "{app}:")) << names.waiter;
  }
}

TEST(RedisNames, AnEscapedPatternMatchesItselfAlone) {
  EXPECT_EQ(glob_escape("dlock:job"), "dlock:job");
  EXPECT_EQ(glob_escape("a*b?[c]"), "a\\*b\\?\\[c\\]");
  EXPECT_EQ(glob_escape("^-\\"), "\\^\\-\\\\");
  EXPECT_EQ(glob_escape("\xC3\xA4 {x}\n"), "\xC3\xA4 {x}\n");
  EXPECT_EQ(glob_escape(""), "");
}

}  // namespace
}  // namespace dlock::redis
