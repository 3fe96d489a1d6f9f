#include "process/proc.hpp"

#include <fcntl.h>

#include "util/poll.hpp"

namespace dlock {
namespace {

constexpr int kTriesToWalkUp = 5;

Below below(pid_t pid, pid_t ancestor) {
  if (!proc::is_ours()) return Below::unknown;
  // An ancestor that ends during the walk gives its children another parent: walk again.
  for (int tries = 0; tries < kTriesToWalkUp; ++tries) {
    std::optional<pid_t> at = pid;
    while (at && *at > 1) {
      at = proc::parent_of(*at);
      if (at == ancestor) return Below::yes;
    }
    if (at) return Below::no;
  }
  return Below::unknown;
}

struct Status {
  char state;
  pid_t parent;
};

std::optional<Status> read_status(const proc::Path& path) {
  const Fd fd = proc::open_to_read(path);
  std::array<char, 512> buffer;
  const ssize_t got = fd ? read(fd.get(), buffer.data(), buffer.size() - 1) : 0;
  if (got <= 0) return std::nullopt;
  buffer[static_cast<std::size_t>(got)] = '\0';
  // pid (name) state ppid ...: the name may hold anything, so look for the last parenthesis.
  const char* const name_end = std::strrchr(buffer.data(), ')');
  Status out{};
  if (!name_end || std::sscanf(name_end, ") %c %d", &out.state, &out.parent) != 2) return {};
  return out;
}

}  // namespace

Below below_us(pid_t pid) { return below(pid, getpid()); }
Below above_us(pid_t pid) { return pid > 0 ? below(getpid(), pid) : Below::unknown; }

namespace proc {

Fd open_to_read(const Path& path) { return Fd(open(path.data(), O_RDONLY | O_CLOEXEC)); }

bool is_ours() {
  std::array<char, 32> name{};
  if (readlink("/proc/self", name.data(), name.size() - 1) <= 0) return false;
  return std::string_view(name.data()) == std::to_string(getpid());
}

std::optional<pid_t> parent_of(pid_t pid) {
  const auto status = read_status(path_of("/proc/%d/stat", pid));
  return status ? std::optional(status->parent) : std::nullopt;
}

bool is_stopped(pid_t pid) {
  bool out = true;
  read_directory(path_of("/proc/%d/task", pid), [&](pid_t task) {
    const auto status = read_status(path_of("/proc/%d/task/%d/stat", pid, task));
    constexpr std::string_view kCannotRun = "TtZX";  // stopped, traced, ended
    out = out && (!status || kCannotRun.find(status->state) != std::string_view::npos);
  });
  return out;
}

bool has_children() {
  static const bool has = access("/proc/thread-self/children", R_OK) == 0;
  return has;
}

std::string name_of(pid_t pid) {
  const Fd fd = open_to_read(path_of("/proc/%d/comm", pid));
  std::array<char, 32> buffer;
  const ssize_t got = fd ? read(fd.get(), buffer.data(), buffer.size()) : 0;
  if (got <= 1) return "?";
  return {buffer.data(), static_cast<std::size_t>(got) - 1};  // without the newline
}

Fd pidfd_of(pid_t pid) { return Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

bool send(const Fd& pidfd, int sig) {
  return syscall(SYS_pidfd_send_signal, pidfd.get(), sig, nullptr, 0) == 0;
}

bool has_ended(const Fd& pidfd) { return util::wait_readable(pidfd.get(), Deadline{}); }

}  // namespace proc
}  // namespace dlock
