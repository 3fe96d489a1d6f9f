#include "process/inherited.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "process/proc.hpp"
#include "util/text.hpp"
#include "util/umask.hpp"

namespace dlock {
namespace {

constexpr proc::Path kDirectory{"/proc/self/fd"};

std::vector<int> open_fds_below(int end) {
  std::vector<int> fds;
  for (int fd = 0; fd < end; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) fds.push_back(fd);
  }
  return fds;
}

std::vector<int> open_fds() {
  // Since Linux 6.2 the size of the directory is its number of entries; before, it is 0.  If only
  // the standard descriptors are open, the size says so in a tenth of the time of listing them.
  std::vector<int> fds = open_fds_below(3);
  struct stat about {};
  const bool has_size = stat(kDirectory.data(), &about) == 0 && about.st_size > 0;
  if (has_size && static_cast<std::size_t>(about.st_size) == fds.size()) return fds;

  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(kDirectory.data()), closedir);
  if (!dir) return fds;
  fds.clear();
  while (const dirent* entry = readdir(dir.get())) {
    const auto fd = util::parse_int(entry->d_name, 0, 1 << 30);
    if (fd && *fd != dirfd(dir.get())) fds.push_back(static_cast<int>(*fd));
  }
  std::sort(fds.begin(), fds.end());
  return fds;
}

// Async-signal-safe.
void close_on_exec(unsigned first, unsigned last) {
  if (first > last) return;
  if (syscall(SYS_close_range, first, last, CLOSE_RANGE_CLOEXEC) == 0) return;
  // Linux before 5.11, or a sandbox.  Not every number: a container may have a limit of 10^9.
  proc::read_directory(kDirectory, [&](int fd) {
    const auto number = static_cast<unsigned>(fd);
    if (first <= number && number <= last) fcntl(fd, F_SETFD, FD_CLOEXEC);
  });
}

bool is_real_time_of_libc(int sig) { return sig > SIGSYS && sig < SIGRTMIN; }

// Async-signal-safe.
void set_disposition(int sig, bool ignored) {
  struct sigaction action {};
  action.sa_handler = ignored ? SIG_IGN : SIG_DFL;
  sigaction(sig, &action, nullptr);
}

}  // namespace

bool ignores(int sig) {
  struct sigaction action {};
  return sigaction(sig, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

Inherited Inherited::note() {
  Inherited out{};
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &out.mask);
  out.umask = util::users_umask();
  out.ignored_sigchld = signal(SIGCHLD, SIG_DFL) == SIG_IGN;
  out.missing.fill(true);
  for (const int fd : open_fds()) {
    if (fd < 3) {
      out.missing[static_cast<std::size_t>(fd)] = false;
    } else {
      out.fds.emplace_back(fd);
    }
  }
  for (int fd = 0; fd < 3; ++fd) {
    if (!out.missing[static_cast<std::size_t>(fd)]) continue;
    (void)open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
  }
  return out;
}

void Inherited::note_dispositions() {
  sigemptyset(&ignored.emplace());
  for (int sig = 1; sig <= SIGRTMAX; ++sig) {
    const bool was_ignored = sig == SIGCHLD ? ignored_sigchld : ignores(sig);
    if (was_ignored) sigaddset(&*ignored, sig);
  }
}

// No handler of a client library may be left when the signals are unblocked: until the exec, the
// child runs in the memory of the parent.
void Inherited::restore() const {
  if (ignored) {
    for (int sig = 1; sig <= SIGRTMAX; ++sig) {
      if (sig == SIGKILL || sig == SIGSTOP || is_real_time_of_libc(sig)) continue;
      set_disposition(sig, sigismember(&*ignored, sig) == 1);
    }
  } else if (ignored_sigchld) {
    set_disposition(SIGCHLD, true);
  }
  unsigned next = 3;
  for (const Fd& fd : fds) {
    close_on_exec(next, static_cast<unsigned>(fd.get()) - 1);
    next = static_cast<unsigned>(fd.get()) + 1;
  }
  close_on_exec(next, ~0U);
  for (int fd = 0; fd < 3; ++fd) {
    if (missing[static_cast<std::size_t>(fd)]) close(fd);
  }
  ::umask(umask);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
}

void Inherited::drop() {
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) null = eventfd(0, EFD_CLOEXEC);  // a bare chroot: anything but the caller's pipe
  if (null >= 0) {
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    close(null);
  }
  fds.clear();
}

}  // namespace dlock
