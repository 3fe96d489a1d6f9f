// Finding.  /proc/PID/task/TID/children lists the children of one thread without a look at any
// other
//   process of the machine; a kernel without CONFIG_PROC_CHILDREN costs a scan of /proc instead.
//   Both are snapshots: a process that is born during the walk can be missed, which is why ending a
//   tree is a loop.  It comes to an end: killed processes fork no more, and the children of the
//   killed become ours.
// Hiding.  A /proc mounted with hidepid (systemd: ProtectProc) shows nothing of a process that is
//   not dumpable, such as a dlock with a password (run.cpp) in the job of another, but its number,
//   in the list of its parent.  It is signalled all the same; what is below it becomes ours when it
//   dies, and is ended then.
// Signalling.  A pid can be used again as soon as somebody has reaped it.  So: open a pidfd, look
//   whether the process behind the number is still the child of whom we found it under (or ours,
//   if that one died), and signal through the pidfd.

#include "engine/process_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include "util/fd.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

using Dir = std::unique_ptr<DIR, int (*)(DIR*)>;

std::optional<std::string> read_all(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::string out;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

std::vector<pid_t> numbers_in(const std::string& directory) {
  std::vector<pid_t> out;
  const Dir dir(opendir(directory.c_str()), closedir);
  if (!dir) return out;
  while (const dirent* entry = readdir(dir.get())) {
    if (const auto pid = util::parse_int(entry->d_name, 1, 1 << 30)) {
      out.push_back(static_cast<pid_t>(*pid));
    }
  }
  return out;
}

struct Stat {
  Process process;
  char state = '?';
};

std::optional<Stat> read_stat(pid_t pid) {
  const auto text = read_all("/proc/" + std::to_string(pid) + "/stat");
  if (!text) return std::nullopt;
  // pid (name) state ppid ...; the name may hold anything, so look for the last parenthesis.
  const auto open_at = text->find('(');
  const auto close_at = text->rfind(')');
  if (open_at == std::string::npos || close_at == std::string::npos) return std::nullopt;
  if (close_at + 4 >= text->size()) return std::nullopt;
  Stat out;
  out.process.pid = pid;
  out.process.name = text->substr(open_at + 1, close_at - open_at - 1);
  out.state = (*text)[close_at + 2];
  out.process.parent = static_cast<pid_t>(std::strtol(text->c_str() + close_at + 4, nullptr, 10));
  return out;
}

bool kernel_lists_children() {
  static const bool yes = access("/proc/thread-self/children", R_OK) == 0;
  return yes;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> out;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const pid_t task : numbers_in(tasks)) {
    const auto text = read_all(tasks + '/' + std::to_string(task) + "/children");
    std::string_view rest = text ? std::string_view(*text) : std::string_view();
    while (!rest.empty()) {
      const auto space = rest.find(' ');
      if (const auto child = util::parse_int(rest.substr(0, space), 1, 1 << 30)) {
        out.push_back(static_cast<pid_t>(*child));
      }
      if (space == std::string_view::npos) break;
      rest.remove_prefix(space + 1);
    }
  }
  return out;
}

std::vector<Process> children_by_scan(pid_t parent, const std::vector<Process>& everybody) {
  std::vector<Process> out;
  for (const Process& process : everybody) {
    if (process.parent == parent) out.push_back(process);
  }
  return out;
}

std::vector<Process> all_processes() {
  std::vector<Process> out;
  for (const pid_t pid : numbers_in("/proc")) {
    const auto stat = read_stat(pid);
    if (stat && stat->state != 'Z' && stat->state != 'X') out.push_back(stat->process);
  }
  return out;
}

std::vector<Process> living_children(pid_t parent) {
  std::vector<Process> out;
  for (const pid_t pid : children_of(parent)) {
    const auto stat = read_stat(pid);
    if (stat && stat->state != 'Z' && stat->state != 'X') out.push_back(stat->process);
    const bool hidden = !stat && (kill(pid, 0) == 0 || errno != ESRCH);
    if (hidden) out.push_back({pid, parent, "?"});
  }
  return out;
}

// Whether the number still belongs to the process that was found: to a child of its parent or, if
// that one died, of ours.
bool is_still_there(const Process& process) {
  const auto is_child_of = [now = read_stat(process.pid), &process](pid_t parent) {
    if (now) return now->process.parent == parent;
    const std::vector<pid_t> children = children_of(parent);
    return std::find(children.begin(), children.end(), process.pid) != children.end();
  };
  return is_child_of(process.parent) || is_child_of(getpid());
}

}  // namespace

void become_subreaper() { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

std::vector<Process> descendants() {
  const bool listed = kernel_lists_children();
  const std::vector<Process> everybody = listed ? std::vector<Process>{} : all_processes();
  const auto children = [&](pid_t pid) {
    return listed ? living_children(pid) : children_by_scan(pid, everybody);
  };
  std::vector<Process> out = children(getpid());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::vector<Process> more = children(out[i].pid);
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

std::vector<Process> ancestors() {
  std::vector<Process> out;
  for (pid_t pid = getppid(); pid > 0 && out.size() < 256;) {
    const auto stat = read_stat(pid);
    if (!stat) break;
    out.push_back(stat->process);
    pid = stat->process.parent;
  }
  return out;
}

void signal_tree(int sig) {
  for (const Process& process : descendants()) {
    const Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
    if (!pidfd && errno == ESRCH) continue;
    if (!is_still_there(process)) continue;
    if (pidfd) {
      syscall(SYS_pidfd_send_signal, pidfd.get(), sig, nullptr, 0);
    } else {
      kill(process.pid, sig);  // no descriptor left, or Linux before 5.3: better than a survivor
    }
  }
}

Reaped reap(pid_t wanted) {
  Reaped out;
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) out.none_left = true;
    if (pid <= 0) return out;
    if (pid == wanted) {
      out.pid = pid;
      out.status = status;
    }
  }
}

}  // namespace dlock
