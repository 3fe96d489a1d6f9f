#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "backends/zookeeper/names.hpp"

namespace dlock::zookeeper {
namespace {

constexpr std::string_view kUuid = "0f3a5b7c9d1e2f405162738495a6b7c8";
constexpr std::string_view kDashed = "0f3a5b7c-9d1e-2f40-5162-738495a6b7c8";

std::string with_uuid(std::string text) {
  if (const auto at = text.find("UUID"); at != std::string::npos) text.replace(at, 4, kDashed);
  if (const auto at = text.find("HEX"); at != std::string::npos) text.replace(at, 3, kUuid);
  return text;
}

struct Known {
  const char* name;
  Mode mode;
  unsigned slots;
  std::int32_t sequence;
  const char* maker;
};

TEST(ZookeeperNames, EverybodysNodesAreKnown) {
  for (const Known& known : std::initializer_list<Known>{
           {"_c_UUID-lock-0000000012", Mode::exclusive, 1, 12, "curator"},
           {"_c_UUID-__READ__0000000012", Mode::shared, 1, 12, "curator"},
           {"_c_UUID-__WRIT__2147483647", Mode::exclusive, 1, 2147483647, "curator"},
           {"_c_UUID-slots-3-lock-0000000012", Mode::slots, 3, 12, "curator"},
           {"HEX__lock__0000000012", Mode::exclusive, 1, 12, "kazoo"},
           {"HEX__rlock__0000000012", Mode::shared, 1, 12, "kazoo"},
           {"HEX__slots-40__lock__0000000012", Mode::slots, 40, 12, "kazoo"}}) {
    const auto node = parse_node(with_uuid(known.name));
    ASSERT_TRUE(node) << known.name;
    EXPECT_EQ(node->name, with_uuid(known.name));
    EXPECT_EQ(node->claim.mode, known.mode) << known.name;
    EXPECT_EQ(node->claim.slots, known.slots) << known.name;
    EXPECT_EQ(node->sequence, known.sequence) << known.name;
    EXPECT_EQ(node->maker, known.maker) << known.name;
    EXPECT_EQ(node->uuid, kUuid) << known.name;
  }
}

TEST(ZookeeperNames, AnyPrefixIsInTheQueue) {
  for (const char* name : {"x-144c5a0d2b30001-0000000007", "0000000007", "job0000000007",
                           "\xC3\xA4-0000000007", "_c_short-0000000007"}) {
    const auto node = parse_node(name);
    ASSERT_TRUE(node) << name;
    EXPECT_EQ(node->claim.mode, Mode::exclusive);
    EXPECT_EQ(node->sequence, 7);
    EXPECT_EQ(node->uuid, "");
  }
}

TEST(ZookeeperNames, WhatHasNoSequenceIsNot) {
  for (const char* name : {"", "junk", "000000007", "lock-", "lock-00000000x7", "lock-0000000007 ",
                           "lock-9999999999"}) {
    EXPECT_FALSE(parse_node(name)) << name;
  }
}

TEST(ZookeeperNames, ASequenceCanBeNegative) {
  const auto sequence_of = [](std::string_view name) { return parse_node(name)->sequence; };
  EXPECT_EQ(sequence_of("lock--2147483648"), INT32_MIN);
  EXPECT_EQ(sequence_of("lock--1000000000"), -1'000'000'000);
  EXPECT_EQ(sequence_of("lock--999999999"), -999'999'999);
  EXPECT_EQ(sequence_of("lock--000000005"), -5);
  EXPECT_EQ(sequence_of("__READ__-2147483648"), INT32_MIN);
  EXPECT_EQ(sequence_of("__lock__-000000005"), -5);
  EXPECT_EQ(sequence_of("-2147483648"), INT32_MIN);
  EXPECT_EQ(sequence_of("lock-1000000000"), 1'000'000'000);  // the - belongs to the name
  EXPECT_EQ(sequence_of("lock-2147483647"), INT32_MAX);
  for (const char* name : {"lock--2147483648", "lock-1000000000", "lock--000000005"}) {
    EXPECT_EQ(parse_node(name)->maker, "curator") << name;
  }
}

TEST(ZookeeperNames, WhatWeMakeIsWhatWeRead) {
  for (const Style style : {Style::curator, Style::curator_rw, Style::kazoo}) {
    for (const Mode mode : {Mode::exclusive, Mode::shared, Mode::slots}) {
      const unsigned slots = mode == Mode::slots ? 17 : 1;
      for (const char* sequence : {"0000000000", "2147483647", "-2147483648", "-000000001"}) {
        const auto node = parse_node(node_prefix(style, {mode, slots}, kUuid) + sequence);
        ASSERT_TRUE(node);
        EXPECT_EQ(node->claim.mode, mode);
        EXPECT_EQ(node->claim.slots, slots);
        EXPECT_EQ(node->uuid, kUuid);
        EXPECT_EQ(node->sequence, std::stol(sequence));
      }
    }
  }
}

TEST(ZookeeperNames, EachStyleIsThatOfItsLibrary) {
  const auto name = [](Style style, Mode mode) { return node_prefix(style, {mode, 3}, kUuid); };
  EXPECT_EQ(name(Style::curator, Mode::exclusive), with_uuid("_c_UUID-lock-"));
  EXPECT_EQ(name(Style::curator, Mode::shared), with_uuid("_c_UUID-__READ__"));
  EXPECT_EQ(name(Style::curator, Mode::slots), with_uuid("_c_UUID-slots-3-lock-"));
  EXPECT_EQ(name(Style::curator_rw, Mode::exclusive), with_uuid("_c_UUID-__WRIT__"));
  EXPECT_EQ(name(Style::kazoo, Mode::exclusive), with_uuid("HEX__lock__"));
  EXPECT_EQ(name(Style::kazoo, Mode::shared), with_uuid("HEX__rlock__"));
  EXPECT_EQ(name(Style::kazoo, Mode::slots), with_uuid("HEX__slots-3__lock__"));
}

TEST(ZookeeperNames, ASlotHasANodeThatIsNotInTheQueue) {
  for (const unsigned slot : {1U, 9U, 10U, 1'024U, 99'999U}) {
    EXPECT_EQ(slot_of(slot_node(slot)), slot);
    EXPECT_FALSE(parse_node(slot_node(slot)));
  }
  EXPECT_EQ(slot_node(3), "slot-3");
  for (const char* other :
       {"", "slot-", "slot-0", "slot-03", "slot-3 ", "slot--3", "slot-+3", "slot-x", "Slot-3",
        "slot-3000000000", "slot-0000000003", "_c_slot-3", "lock-3"}) {
    EXPECT_FALSE(slot_of(other)) << other;
  }
}

// Curator compares what follows the last "lock-", or else the whole name; the recipe in C what
// follows the last "-".
TEST(ZookeeperNames, OtherLibrariesSortItBehindTheQueue) {
  for (const unsigned slot : {1U, 3U, 1'024U}) {
    const std::string name = slot_node(slot);
    EXPECT_EQ(name.find("lock-"), std::string::npos);
    for (const char* sequence : {"0000000000", "0999999999", "-000000001"}) {
      EXPECT_GT(name, sequence);
      EXPECT_GT(name.substr(name.rfind('-') + 1), sequence);
    }
  }
}

TEST(ZookeeperNames, AnOwnersIdIsTheUuid) {
  EXPECT_EQ(uuid_for(kUuid), kUuid);
  for (const char* odd :
       {"", "0f3a", "../../../../../../../../../../../", "0F3A5B7C9D1E2F40516273849"}) {
    EXPECT_EQ(uuid_for(odd).size(), 32U);
    EXPECT_NE(uuid_for(odd), uuid_for(odd));
  }
}

TEST(ZookeeperNames, AnyKeyIsOneComponentAndComesBack) {
  for (const char* key : {"job", "a/b", "..", ".", "50%", "%broken", "\xC3\xA4 x", "a.b"}) {
    const std::string node = node_of(key);
    EXPECT_EQ(node.find('/'), std::string::npos);
    EXPECT_FALSE(node.starts_with('.'));
    EXPECT_NE(node, kBroken);
    EXPECT_EQ(key_of(node), key);
  }
  for (const char* node : {"", "%broken", "my job", "%6a", "%6A", "a%2fb"}) {
    EXPECT_FALSE(key_of(node)) << node;
  }
}

TEST(ZookeeperNames, AMarkIsOneComponentAndComesBack) {
  const std::vector<MarkName> names{{"job", ""},      {"job", "2026-11-22"}, {"job~2026", ""},
                                    {"job", "2026"},  {"a/b~", "2026-W47"},  {"%clock", ""},
                                    {"job-2026", ""}, {"j", "20"},           {"j%20", ""}};
  std::set<std::string> nodes;
  for (const MarkName& name : names) {
    const std::string node = mark_node(name);
    EXPECT_EQ(node.find('/'), std::string::npos);
    EXPECT_EQ(mark_of(node), name) << node;
    nodes.insert(node);
  }
  EXPECT_EQ(nodes.size(), names.size());
  for (const char* node : {"", "~", "~2026", "%clock", "job~", "job~a~b", "job~2026 1", "my job~1",
                           "job~12345678901234567"}) {
    EXPECT_FALSE(mark_of(node)) << node;
  }
  EXPECT_FALSE(key_of(kDone));
}

}  // namespace
}  // namespace dlock::zookeeper
