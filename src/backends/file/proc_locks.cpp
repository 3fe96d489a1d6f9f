// Reading /proc/locks takes some 10 ms now and then (Linux 6.x), since the kernel waits for each
// processor.  So an uncontended grant does not read it.
//
// The kernel returns it a page at a time, and the list may change between two pages, so a long one
// may have a line twice, or lack one.  Nothing that must be right depends on it alone.
#include "backends/file/proc_locks.hpp"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

#include "util/fd.hpp"

namespace dlock::file {
namespace {

template <class Number>
bool read_number(std::string_view text, Number& value, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc{} && end == text.data() + text.size();
}

std::string_view take_word(std::string_view& text, char separator = ' ') {
  while (text.starts_with(' ')) text.remove_prefix(1);
  const auto end = text.find(separator);
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

// 12: FLOCK  ADVISORY  WRITE 4121 00:1a:5678 0 EOF
// 12: -> FLOCK  ADVISORY  READ 4130 00:1a:5678 0 EOF       major and minor are in hex
std::optional<FlockLine> parse_line(std::string_view text) {
  FlockLine line;
  take_word(text);
  std::string_view kind = take_word(text);
  if (kind == "->") {
    line.waiting = true;
    kind = take_word(text);
  }
  if (kind != "FLOCK") return std::nullopt;
  take_word(text);
  line.exclusive = take_word(text) == "WRITE";
  const bool read = read_number(take_word(text), line.pid, 10) &&
                    read_number(take_word(text, ':'), line.major, 16) &&
                    read_number(take_word(text, ':'), line.minor, 16) &&
                    read_number(take_word(text), line.inode, 10);
  if (!read) return std::nullopt;
  return line;
}

}  // namespace

std::vector<FlockLine> parse_proc_locks(std::string_view text) {
  std::vector<FlockLine> lines;
  while (!text.empty()) {
    if (auto line = parse_line(take_word(text, '\n'))) lines.push_back(*line);
  }
  return lines;
}

std::vector<FlockLine> read_proc_locks() {
  const Fd fd(::open("/proc/locks", O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 16'384> buffer;
  for (;;) {
    const ssize_t got = fd ? ::read(fd.get(), buffer.data(), buffer.size()) : 0;
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return parse_proc_locks(text);
}

std::vector<FlockLine> lines_of(const std::vector<FlockLine>& lines, dev_t device, ino_t inode) {
  std::vector<FlockLine> out;
  for (const FlockLine& line : lines) {
    const bool this_file =
        line.inode == inode && line.major == major(device) && line.minor == minor(device);
    if (this_file && std::find(out.begin(), out.end(), line) == out.end()) out.push_back(line);
  }
  return out;
}

}  // namespace dlock::file
