#include "util/log.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "util/clock.hpp"
#include "util/fd.hpp"
#include "util/text.hpp"
#include "util/width.hpp"

namespace dlock::util {
namespace {

constexpr std::size_t kMostKept = 64 * 1024;
constexpr Millis kFlushes{1'000};
// A pipe that poll(2) reports writable accepts this many bytes without blocking.
constexpr std::size_t kPipe = 4'096;
// With a lower limit of descriptors, a run needs all of them.
constexpr rlim_t kManyDescriptors = 64;
// A terminal may accept less than a pipe.
constexpr std::size_t kChunk = 512;
constexpr std::string_view kHead = "dlock: ";
constexpr std::array kNames{"error", "warning", "note", "detail", "trace"};

// Writes lines to stderr without blocking. stderr is shared with the job and the caller, so it
// cannot be made non-blocking. poll(2) does not help: the job may fill it between poll and write.
// Therefore a pipe or a terminal is opened a second time, for this process alone.
class Output {
 public:
  void open();
  // As write(2), but fails with EAGAIN instead of blocking.
  ssize_t write(std::string_view text);
  bool wait_writable(Millis most) const;

 private:
  enum class Kind { unknown, stream, socket, other };
  Kind kind();

  Kind kind_ = Kind::unknown;
  Fd own_;
};

Output::Kind Output::kind() {
  struct stat about {};
  if (kind_ == Kind::unknown && fstat(STDERR_FILENO, &about) == 0) {
    kind_ = S_ISSOCK(about.st_mode)                                 ? Kind::socket
            : S_ISFIFO(about.st_mode) || isatty(STDERR_FILENO) == 1 ? Kind::stream
                                                                    : Kind::other;
  }
  return kind_;
}

void Output::open() {
  rlimit limit{};
  const bool are_scarce =
      getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < kManyDescriptors;
  if (own_ || are_scarce || kind() != Kind::stream) return;
  const bool is_for_reading = (fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE) == O_RDONLY;
  unsigned number = 0;
  const bool is_master = ioctl(STDERR_FILENO, TIOCGPTN, &number) == 0;  // an open makes another one
  if (is_for_reading || is_master) return;
  own_.reset(::open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

bool Output::wait_writable(Millis most) const {
  pollfd item{own_ ? own_.get() : STDERR_FILENO, POLLOUT, 0};
  return ::poll(&item, 1, static_cast<int>(most.count())) > 0 && (item.revents & POLLOUT) != 0;
}

ssize_t Output::write(std::string_view text) {
  if (own_) return ::write(own_.get(), text.data(), text.size());
  if (kind() == Kind::socket) {
    return send(STDERR_FILENO, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  if (kind() != Kind::stream) return ::write(STDERR_FILENO, text.data(), text.size());
  // stderr could not be opened a second time (no /proc, another user's terminal): poll first.
  if (!wait_writable(Millis{0})) {
    errno = EAGAIN;
    return -1;
  }
  return ::write(STDERR_FILENO, text.data(), std::min(text.size(), kChunk));
}

struct State {
  std::mutex mutex;
  int verbosity = 0;
  bool json = false;
  bool status_shown = false;
  bool beside_status = false;  // another process shows one
  Output output;
  std::vector<std::string>* into = nullptr;
  std::string kept;
  std::size_t dropped = 0;  // lines
};

State& state() {
  static State instance;
  return instance;
}

std::string format(const State& s, Level level, std::string_view message) {
  if (!s.json) return std::string(kHead) + printable(message) + '\n';
  using nlohmann::json;
  const json line{{"level", kNames[static_cast<std::size_t>(level)]}, {"message", message}};
  return printable_json(line.dump(-1, ' ', false, json::error_handler_t::replace)) + '\n';
}

// As many whole lines as a pipe accepts in one write, so that output of the job does not split a
// line.
std::string_view next_piece(std::string_view text) {
  const auto last = text.substr(0, kPipe).rfind('\n');
  if (last != std::string_view::npos) return text.substr(0, last + 1);
  return text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
}

// Writes the kept text until none is left, or until stderr accepts no more.  Text that stderr
// refuses (it is closed, the disk is full) is discarded.
void write_out(State& s) {
  while (!s.kept.empty()) {
    const ssize_t wrote = s.output.write(next_piece(s.kept));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) return;
    s.kept.erase(0, wrote <= 0 ? s.kept.size() : static_cast<std::size_t>(wrote));
    if (s.kept.empty() && s.dropped > 0) {
      s.kept = format(
          s, Level::warning,
          std::to_string(std::exchange(s.dropped, 0)) + " messages dropped: stderr was blocked");
    }
  }
}

void say(State& s, std::string_view text) {
  if (s.kept.size() + text.size() <= kMostKept) {
    s.kept += text;
  } else if (text.ends_with('\n')) {
    ++s.dropped;
  }
  write_out(s);
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
  if (s.into != nullptr && level <= Level::warning) {
    s.into->emplace_back(message);
    return;
  }
  std::string line = s.status_shown ? "\r\x1b[K" : "";
  s.status_shown = s.beside_status;
  say(s, line + format(s, level, message));
} catch (const std::bad_alloc&) {
  (void)state().output.write("dlock: out of memory\n");
}

LogInto::LogInto(std::vector<std::string>& kept) {
  const std::lock_guard lock(state().mutex);
  state().into = &kept;
}

LogInto::~LogInto() {
  const std::lock_guard lock(state().mutex);
  state().into = nullptr;
}

bool log_has_terminal() {
  static const bool yes = isatty(STDERR_FILENO) == 1;
  return yes && !state().json;
}

std::size_t log_columns() {
  return terminal_width() - std::min(terminal_width(), kHead.size() + 1);
}

void log_status_line(std::string_view message, std::string_view above) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (message.empty() && !s.status_shown) return;
  write_out(s);
  if (!s.kept.empty()) return;  // a clock that nobody saw in time is of no use later
  std::string line = "\r\x1b[K";
  if (!above.empty()) line += printable(above) + '\n';
  // A line that wraps could not be erased.
  if (!message.empty()) {
    line += cut_to_width(std::string(kHead) + printable(message), terminal_width() - 1);
  }
  s.status_shown = !message.empty();
  say(s, line);
}

void log_beside_status_line(bool is_shown) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.beside_status = is_shown && log_has_terminal();
  s.status_shown = log_has_terminal() && s.verbosity >= 0;
}

void log_flush() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const Deadline until = after(Clock::now(), kFlushes);
  write_out(s);
  while (!s.kept.empty() && s.output.wait_writable(remaining(until))) write_out(s);
}

void log_never_blocks() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.output.open();
}

void log_forget() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.kept.clear();
  s.dropped = 0;
}

void log_end() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  write_out(s);
  s.output = Output();
  Fd nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!nowhere) nowhere.reset(eventfd(0, EFD_CLOEXEC));  // a bare chroot
  if (nowhere) dup2(nowhere.get(), STDERR_FILENO);
}

}  // namespace dlock::util
