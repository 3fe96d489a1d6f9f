#include <gtest/gtest.h>

#include <fstream>

#include "backends/file/durable_file.hpp"
#include "support/temp_dir.hpp"

namespace dlock::file {
namespace {

constexpr std::size_t kSecondCopy = 16 * 1024;

class DurableFileTest : public testing::Test {
 protected:
  static DurableFile must_open(const test::TempDir& dir) {
    auto locks = LockDir::open(dir.path(), Trust::named);
    EXPECT_TRUE(locks) << locks.error().message;
    Place place{.dir = *locks, .folder = {}, .leaf = "x", .shown = dir.path() + "/x"};
    auto file = DurableFile::open(std::move(place), after(Clock::now(), Millis{20'000}));
    EXPECT_TRUE(file) << file.error().message;
    return std::move(*file);
  }
  std::string read() const {
    auto text = must_open(dir).read();
    if (!text) return "error " + text.error().message;
    return text->value_or("none");
  }
  void write(const std::string& text) const {
    auto file = must_open(dir);
    ASSERT_TRUE(file.read());
    const auto ok = file.write(text);
    ASSERT_TRUE(ok) << ok.error().message;
  }
  std::string path() const { return dir.path() + "/x"; }
  std::string bytes() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put(const std::string& content, const std::string& name = "x") const {
    std::ofstream(dir.path() + '/' + name, std::ios::binary | std::ios::trunc) << content;
  }

  test::TempDir dir;
};

TEST_F(DurableFileTest, HoldsWhatWasWrittenLast) {
  EXPECT_EQ(read(), "none");
  for (int i = 0; i < 9; ++i) {
    write(std::to_string(i));
    EXPECT_EQ(read(), std::to_string(i));
  }
  write("");
  EXPECT_EQ(read(), "");
  const std::string longest(14 * 1024, 'x');
  write(longest);
  EXPECT_EQ(read(), longest);
  write("short");
  EXPECT_EQ(read(), "short");
}

// Whatever of the newest copy is not on the disk, what was written before it counts.
TEST_F(DurableFileTest, ACopyThatIsTornDoesNotCount) {
  const std::string longest(14 * 1024, 'x');
  for (const bool second : {false, true}) {
    put("");
    put("", "x~latch");
    if (second) write("older");
    write("before");
    const std::string old = bytes();
    write(longest);
    const std::string whole = bytes();
    const std::size_t at = second ? 0 : kSecondCopy;
    for (const std::size_t torn : {30U, 50U, 51U, 512U, 4'096U, 14'000U}) {
      std::string content = whole;
      std::string before = old;
      before.resize(content.size());
      content.replace(at, torn, before.substr(at, torn));  // the first sectors are the old ones
      put(content);
      EXPECT_EQ(read(), "before") << torn;
      content = whole;
      content.replace(at + torn, 100, before.substr(at + torn, 100));  // or one in the middle
      put(content);
      EXPECT_EQ(read(), "before") << torn;
    }
    put(whole);
    EXPECT_EQ(read(), longest);
  }
}

// It was killed after it had written, and before that was durable.
TEST_F(DurableFileTest, AWriterThatWasKilledHarmsNobody) {
  write("one");
  write("two");
  put("1", "x~latch");
  EXPECT_EQ(read(), "two");
  write("three");
  EXPECT_EQ(read(), "three");
  std::ifstream latch(dir.path() + "/x~latch");
  EXPECT_EQ(latch.get(), '0');
}

TEST_F(DurableFileTest, BeforeTheFirstWriteZerosAreNothing) {
  put(std::string(100, '\0'));
  EXPECT_EQ(read(), "none");
  write("one");
  EXPECT_EQ(read(), "one");
}

TEST_F(DurableFileTest, WhatIsSomethingElseIsLeftAlone) {
  for (const std::string content : {"1", "hello\n", "dlock 1\n", "\0x"}) {
    if (content.empty()) continue;
    put(content);
    EXPECT_TRUE(read().starts_with("error ")) << content;
    EXPECT_EQ(bytes(), content);
  }
}

}  // namespace
}  // namespace dlock::file
