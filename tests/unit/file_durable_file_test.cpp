#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "backends/file/durable_file.hpp"
#include "support/temp_dir.hpp"

namespace dlock::file {
namespace {

constexpr std::size_t kSecondCopy = 16 * 1024;

class DurableFileTest : public testing::Test {
 protected:
  DurableFile file() const {
    auto locks = LockDir::open(dir.path(), Trust::named);
    EXPECT_TRUE(locks) << locks.error().message;
    return DurableFile({.dir = *locks, .folder = {}, .leaf = "x", .shown = dir.path() + "/x"}, "x");
  }
  static Deadline soon() { return after(Clock::now(), Millis{20'000}); }
  std::string read() const {
    auto text = file().read(soon());
    if (!text) return "error " + text.error().message;
    return *text ? (*text)->text : "none";
  }
  void write(const std::string& text) const {
    DurableFile its = file();
    ASSERT_TRUE(its.lock(Missing::create, soon()));
    const auto ok = its.write(text);
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
  EXPECT_EQ(read(), "none");
  const std::string longest(14 * 1024, 'x');
  write(longest);
  EXPECT_EQ(read(), longest);
  write("short");
  EXPECT_EQ(read(), "short");
}

TEST_F(DurableFileTest, InADirectoryThatWasReplacedItIsAnErrorAtOnce) {
  DurableFile its = file();
  const std::string moved = dir.path() + ".moved";
  std::filesystem::rename(dir.path(), moved);
  std::filesystem::create_directory(dir.path());
  const Deadline begun = Clock::now();
  const auto locked = its.lock(Missing::create, soon());
  std::filesystem::remove_all(moved);
  ASSERT_FALSE(locked);
  EXPECT_EQ(locked.error().code, Errc::unreachable);
  EXPECT_NE(locked.error().message.find("was replaced"), std::string::npos)
      << locked.error().message;
  EXPECT_LT(Clock::now() - begun, Millis{10'000});
}

// Whatever of the newest copy is not on the disk, what was written before it counts.
TEST_F(DurableFileTest, ACopyThatIsTornDoesNotCount) {
  const std::string longest(14 * 1024, 'x');
  for (const bool second : {false, true}) {
    put("");
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
  std::string content = bytes();
  EXPECT_EQ(content.back(), '0');
  content.back() = '1';
  put(content);
  EXPECT_EQ(read(), "two");
  EXPECT_EQ(bytes().back(), '0');
  put(content);
  write("three");
  EXPECT_EQ(read(), "three");
  EXPECT_EQ(bytes().back(), '0');
}

TEST_F(DurableFileTest, AnUnfinishedWriteIsWaitedForByThoseWhoRead) {
  write("one");
  std::string content = bytes();
  content.back() = '1';
  put(content);
  DurableFile its = file();
  ASSERT_TRUE(its.lock(Missing::leave, soon()));
  const auto late = file().read(after(Clock::now(), Millis{50}));
  EXPECT_EQ(late.error().code, Errc::unreachable);
}

TEST_F(DurableFileTest, WhatIsRemovedIsNotThere) {
  write("one");
  DurableFile its = file();
  ASSERT_TRUE(its.lock(Missing::leave, soon()));
  EXPECT_TRUE(its.remove());
  EXPECT_FALSE(std::ifstream(path()).good());
  EXPECT_EQ(read(), "none");
  EXPECT_FALSE(file().lock(Missing::leave, soon()).value());
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
