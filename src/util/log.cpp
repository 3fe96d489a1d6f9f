#include "util/log.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <string>

#include "util/text.hpp"

namespace dlock::util {
namespace {

constexpr std::size_t kMostKept = 64 * 1024;
// POSIX lets a pipe that polls writable take this much without blocking.
constexpr std::size_t kChunk = 512;
constexpr std::array kNames{"error", "warning", "note", "detail", "trace"};

struct State {
  std::mutex mutex;
  int verbosity = 0;
  bool json = false;
  bool status_shown = false;
  std::string kept;
};

State& state() {
  static State instance;
  return instance;
}

bool writable_now() {
  pollfd item{STDERR_FILENO, POLLOUT, 0};
  return ::poll(&item, 1, 0) > 0 && (item.revents & POLLOUT) != 0;
}

// Writes from the front of `text`; stops when stderr would block, unless `block`.  What a closed or
// full stderr refuses is gone: there is nobody to tell.
void write_out(std::string& text, bool block) {
  while (!text.empty()) {
    if (!block && !writable_now()) return;
    const std::size_t length = block ? text.size() : std::min(text.size(), kChunk);
    const ssize_t wrote = ::write(STDERR_FILENO, text.data(), length);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) {
      if (!block) return;
      pollfd item{STDERR_FILENO, POLLOUT, 0};
      ::poll(&item, 1, -1);
      continue;
    }
    if (wrote <= 0) {
      text.clear();
      return;
    }
    text.erase(0, static_cast<std::size_t>(wrote));
  }
}

void say(State& s, std::string_view text) {
  if (s.kept.size() + text.size() <= kMostKept) s.kept += text;
  write_out(s.kept, false);
}

std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

void set_log(int verbosity, bool json) {
  state().verbosity = verbosity;
  state().json = json;
}

bool log_shows(Level level) {
  const int needed = level == Level::error ? -1 : static_cast<int>(level) - 2;
  return level == Level::warning ? state().verbosity >= 0 : state().verbosity >= needed;
}

void log(Level level, std::string_view message) noexcept try {
  if (!log_shows(level)) return;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  std::string line = s.status_shown ? "\r\x1b[K" : "";
  s.status_shown = false;
  if (s.json) {
    using nlohmann::json;
    line += json{{"level", kNames[static_cast<std::size_t>(level)]}, {"message", message}}.dump(
                -1, ' ', false, json::error_handler_t::replace) +
            '\n';
  } else {
    line += "dlock: " + printable(message) + '\n';
  }
  say(s, line);
} catch (const std::bad_alloc&) {
  constexpr std::string_view kLine = "dlock: out of memory\n";
  if (writable_now()) (void)!::write(STDERR_FILENO, kLine.data(), kLine.size());
}

bool log_has_terminal() {
  static const bool yes = isatty(STDERR_FILENO) == 1;
  return yes && !state().json;
}

void log_status_line(std::string_view message) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (message.empty() && !s.status_shown) return;
  std::string line = "\r\x1b[K";
  if (!message.empty()) {
    std::string text = "dlock: " + printable(message);
    // A line that wraps could not be wiped.  Cuts bytes, so a line of wide letters comes out short.
    const std::size_t room = terminal_width() - 1;
    if (text.size() > room) {
      text.resize(room);
      while (!text.empty() && !is_utf8(text)) text.pop_back();
    }
    line += text;
  }
  s.status_shown = !message.empty();
  say(s, line);
}

void log_after_status_line() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.status_shown = log_has_terminal() && s.verbosity >= 0;
}

void log_flush() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  write_out(s.kept, true);
}

}  // namespace dlock::util
