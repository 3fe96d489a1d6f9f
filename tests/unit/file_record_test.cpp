#include <gtest/gtest.h>

#include "backends/file/record.hpp"

namespace dlock::file {
namespace {

const std::string kBoot = "0c1d8a52-3f0e-4d2b-9a57-5a2c1f6e7b90";

TEST(FileHeader, ComesBackAndHasAFixedWidth) {
  for (const Header& header :
       {Header{1'000, Mode::exclusive, 1}, Header{0, Mode::slots, 4'294'967'295}}) {
    const std::string text = format_header(header);
    EXPECT_EQ(text.size(), kLockHeaderSize);
    EXPECT_EQ(text.back(), '\n');
    const auto read = parse_header(text + "more");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->fence, header.fence);
    EXPECT_EQ(read->mode, header.mode);
    EXPECT_EQ(read->slots, header.slots);
  }
}

TEST(FileHeader, OfSomebodyElseIsNone) {
  const std::string good = format_header({1'000, Mode::shared, 1});
  EXPECT_FALSE(parse_header(""));
  EXPECT_FALSE(parse_header("4121\n"));
  EXPECT_FALSE(parse_header(good.substr(0, kLockHeaderSize - 1)));
  EXPECT_FALSE(parse_header(std::string(1'000, '\0')));
  for (std::size_t at = 0; at < kLockHeaderSize; ++at) {
    if (at == 49) at += 36;  // the boot: anything
    std::string bad = good;
    bad[at] = 'x';
    EXPECT_FALSE(parse_header(bad)) << at;
  }
  EXPECT_FALSE(parse_header(format_header({UINT64_MAX, Mode::shared, 1})));
  EXPECT_FALSE(parse_header(format_header({1, Mode::slots, 0})));
}

// As they were written by versions that reserved numbers in blocks.
TEST(FileHeader, OfAnEarlierVersionIsUnderstood) {
  std::string text = format_header({1'000, Mode::shared, 1});
  text.replace(7, 20, "00000000000000000017");
  text.replace(49, 36, kBoot);
  const auto read = parse_header(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->fence, 1'000u);
  EXPECT_EQ(read->mode, Mode::shared);
  text.replace(7, 20, "00000000000000001001");  // more than was reserved
  EXPECT_FALSE(parse_header(text));
}

constexpr std::uint64_t kNow = 1'790'000'000'000'000;

TEST(FileFence, IsTheTimeAndGrowsWithEachGrant) {
  NextGrant next = next_grant(std::nullopt, kNow, Mode::exclusive, 1);
  EXPECT_EQ(next.header.fence, kNow);
  next = next_grant(next.header, kNow, Mode::slots, 2);
  EXPECT_EQ(next.header.fence, kNow + 1);
  EXPECT_EQ(next.header.mode, Mode::slots);
  EXPECT_EQ(next.header.slots, 2u);
  EXPECT_EQ(next_grant(Header{17, Mode::shared, 1}, kNow, Mode::shared, 1).header.fence, kNow);
}

// While it is not ahead of the clock, the next boot gives larger ones anyway.
TEST(FileFence, IsSyncedOnlyWhenItIsAheadOfTheClock) {
  NextGrant next = next_grant(std::nullopt, kNow, Mode::exclusive, 1);
  EXPECT_FALSE(next.sync);
  next = next_grant(next.header, kNow, Mode::exclusive, 1);
  EXPECT_FALSE(next.sync);
  next = next_grant(next.header, kNow - 3'600'000'000, Mode::exclusive, 1);
  EXPECT_EQ(next.header.fence, kNow + 2);
  EXPECT_TRUE(next.sync);
}

Record sample() {
  Record record{.owner = {.id = "0f3a", .host = "web-3", .pid = 4'121, .user = "app"}};
  record.owner.command = "./cron.sh";
  record.owner.label = "https://ci/7";
  record.mode = Mode::slots;
  record.slots = 3;
  record.acquired_at = "2026-11-21T07:50:08.123Z";
  record.fence = 42;
  record.since_ns = 123'456'789'012;
  record.slot = 2;
  return record;
}

TEST(FileRecord, ComesBack) {
  const Record record = sample();
  const std::string line = format_record(record);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto read = parse_record(line + "rest of a longer one\n");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->owner.id, record.owner.id);
  EXPECT_EQ(read->owner.host, record.owner.host);
  EXPECT_EQ(read->owner.pid, record.owner.pid);
  EXPECT_EQ(read->owner.label, record.owner.label);
  EXPECT_EQ(read->mode, record.mode);
  EXPECT_EQ(read->slots, record.slots);
  EXPECT_EQ(read->fence, record.fence);
  EXPECT_EQ(read->since_ns, record.since_ns);
  EXPECT_EQ(read->slot, record.slot);
}

TEST(FileRecord, IsNoneForGarbage) {
  for (const std::string text :
       {"", "\n", "{}\n", "{", "[]\n", "{\"id\":\"x\"}\n", "{\"id\":\"x\",\"mode\":\"odd\"}\n",
        "{\"id\":\"x\",\"mode\":\"slots\",\"slots\":0}\n",
        "{\"id\":\"x\",\"mode\":\"slots\",\"slots\":1}"}) {
    EXPECT_FALSE(parse_record(text)) << text;
  }
  EXPECT_FALSE(parse_record(std::string(200'000, '[')));
}

TEST(FileRecord, OfAnyTextFitsAndIsValid) {
  Record record = sample();
  record.owner.command = std::string(100'000, '\x01');
  record.owner.host = std::string(100'000, '\xFF');
  record.owner.label = std::string(100'000, '"');
  const std::string line = format_record(record);
  EXPECT_LT(line.size(), kMostRead);
  EXPECT_TRUE(parse_record(line));
}

TEST(FileRevocation, ComesBack) {
  const std::string why = "root on ops-1 (pid 12): \"asked for\"\n";
  EXPECT_EQ(parse_revocation(format_revocation(why) + format_revocation("later")), why);
  EXPECT_EQ(parse_revocation(format_revocation("")), "");
  for (const std::string text : {"", "\n", "{}\n", "garbage\n", "{\"revoked_by\":\"x\"}"}) {
    EXPECT_FALSE(parse_revocation(text)) << text;
  }
}

}  // namespace
}  // namespace dlock::file
