// What dlock says on stderr, to a reader that does not read.
#include "util/log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <future>
#include <string>
#include <string_view>

#include "util/fd.hpp"

namespace dlock::util {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
    reader.reset(ends[0]);
    writer.reset(ends[1]);
  }
  Fd reader;
  Fd writer;
};

std::string read_all(int fd) {
  std::string out;
  std::array<char, 4'096> buffer{};
  for (ssize_t got = 0; (got = read(fd, buffer.data(), buffer.size())) > 0;) {
    out.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return out;
}

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t out = 0;
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++out;
  return out;
}

// In a process of its own a fork would do, but not under a sanitizer: its threads may hold locks
// that the child needs.
TEST(Log, DropsAndCountsWhatNobodyReads) {
  constexpr std::size_t kLines = 5'000;
  const std::string line(90, 'x');
  Pipe messages;
  ASSERT_TRUE(messages.writer);
  const Fd before(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  ASSERT_TRUE(before);
  dup2(messages.writer.get(), STDERR_FILENO);
  messages.writer.reset();
  log_never_blocks();
  for (std::size_t i = 0; i < kLines; ++i) log(Level::error, line);
  auto reading = std::async(std::launch::async, [&] { return read_all(messages.reader.get()); });
  log(Level::error, "the last word");
  log_flush();
  log_end();  // closes the last descriptor of the pipe: the reader is done
  dup2(before.get(), STDERR_FILENO);
  const std::string shown = reading.get();

  const auto lines = count(shown, "dlock: " + line + '\n');
  EXPECT_LT(lines, kLines);
  EXPECT_EQ(count(shown, "dlock: " + std::to_string(kLines - lines) +
                             " messages dropped: stderr was blocked\n"),
            1u)
      << shown.substr(shown.size() - 300);
  EXPECT_EQ(count(shown, "dlock: the last word\n"), 1u);
}

}  // namespace
}  // namespace dlock::util
