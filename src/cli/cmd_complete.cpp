// A second process asks the server, and may finish that after the shell has got no answer: a server
// that is slow would count handshakes that are broken off, and MySQL then refuses the whole host
// (max_connect_errors).  Nor does a file system that hangs hold up the shell.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>

#include "cli/candidates.hpp"
#include "cli/cmd.hpp"
#include "cli/refusal.hpp"
#include "cli/typed_words.hpp"
#include "core/secret.hpp"
#include "util/fd.hpp"
#include "util/poll.hpp"

namespace dlock::cli {
namespace {

// Starting the process and writing the answer take less than the rest of 200 ms.
constexpr Millis kPatience{180};

// When the second process ends at the latest.  A handshake is over by then, or the server is dead.
constexpr unsigned kLongestSeconds = 10;

// A message would garble the line that is being typed.  The words typed so far may name stdin as a
// file to read, and that is the terminal.  And a shell waits until nobody has its pipe open.
void leave_the_terminal_alone() {
  const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null.get(), fd);
}

[[noreturn]] void answer(const Fd& out, const std::vector<std::string>& words,
                         std::span<const BackendEntry> backends) {
  alarm(kLongestSeconds);
  leave_the_terminal_alone();
  try {
    util::write_all(out.get(), candidates(read_typed_words(words), backends));
  } catch (const Refusal&) {
    // The settings are wrong.  The user hears of that when the command runs.
  }
  _exit(0);
}

// All that comes until the end; nothing if the end does not come in time.
std::string read_answer(const Fd& in, Deadline deadline) {
  std::string text;
  std::array<char, 16'384> part{};
  while (util::wait_readable(in.get(), deadline)) {
    const ssize_t got = read(in.get(), part.data(), part.size());
    if (got <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return "";
}

}  // namespace

int cmd_complete(const Invocation& invocation, std::span<const BackendEntry> backends) {
  const Deadline deadline = after(Clock::now(), kPatience);
  hide_memory();  // a URL with a password may be among the words
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return 0;
  const Fd in(ends[0]);
  Fd out(ends[1]);
  const pid_t child = fork();
  if (child == 0) answer(out, invocation.operands, backends);
  out.reset();
  util::write_all(STDOUT_FILENO, read_answer(in, deadline));
  return 0;
}

}  // namespace dlock::cli
