// What dlock says on stderr, to a reader that does not read.
#include "util/log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
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

TEST(Log, DropsAndCountsWhatNobodyReads) {
  constexpr std::size_t kLines = 5'000;
  const std::string line(90, 'x');
  Pipe messages;
  Pipe said_all;  // its end: the process has said all its lines
  Pipe go_on;     // its end: the reader is back
  ASSERT_TRUE(messages.writer && said_all.writer && go_on.writer);
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(messages.writer.get(), STDERR_FILENO);
    go_on.writer.reset();
    log_never_blocks();
    for (std::size_t i = 0; i < kLines; ++i) log(Level::error, line);
    said_all.writer.reset();
    (void)read_all(go_on.reader.get());
    log(Level::error, "the last word");
    log_flush();
    _exit(0);
  }
  messages.writer.reset();
  said_all.writer.reset();
  EXPECT_EQ(read_all(said_all.reader.get()), "");
  go_on.writer.reset();
  const std::string shown = read_all(messages.reader.get());
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);

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
