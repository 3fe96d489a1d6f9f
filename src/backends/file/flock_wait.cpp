// The kernel has a queue for flock(2), but the call cannot be polled, and a blocked thread can be
// got out of it only by a signal that may arrive a moment too early.  So a child process calls it:
// it shares the open file description, so what it is granted is ours, and it can be killed at any
// time with no race.  One of three things is then true:
//   - it had not been granted anything: its death takes it out of the queue;
//   - it had, and reported: the description is locked, and stays so without the helper;
//   - it had, and was killed before it could report: the description is locked all the same.  The
//     caller who gives up closes it, and with the helper dead (we wait for that) no copy is left.
//
// The helper is forked from a process that may have threads, so it does nothing but system calls.
// It closes everything but its two descriptors: a copy of anything else would keep a pipe open, or
// another lock locked.  It dies with its parent.  Its name tells list() for whom it waits.
#include "backends/file/flock_wait.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

void close_from_to(unsigned first, unsigned last) {
  if (first > last || syscall(SYS_close_range, first, last, 0) == 0) return;
  // Linux before 5.9.  Descriptors above a thousand are the rare case of a rare case.
  for (unsigned fd = first; fd <= last && fd < 1'024; ++fd) ::close(static_cast<int>(fd));
}

void close_all_but(unsigned a, unsigned b) {
  const unsigned low = std::min(a, b);
  const unsigned high = std::max(a, b);
  if (low > 0) close_from_to(0, low - 1);
  close_from_to(low + 1, high - 1);
  close_from_to(high + 1, ~0U);
}

[[noreturn]] void help(int fd, int operation, int report, pid_t parent, const char* name) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  prctl(PR_SET_NAME, name);
  close_all_but(static_cast<unsigned>(fd), static_cast<unsigned>(report));
  int outcome;
  do {
    outcome = ::flock(fd, operation);
  } while (outcome != 0 && errno == EINTR);
  const auto byte = static_cast<unsigned char>(outcome == 0 ? 0 : errno);
  [[maybe_unused]] const ssize_t wrote = ::write(report, &byte, 1);
  _exit(0);
}

Error cannot_wait(const char* what) {
  return {Errc::unreachable,
          std::string("cannot wait for the lock: ") + what + ": " + std::strerror(errno)};
}

}  // namespace

FlockWait::~FlockWait() { end(helpers_); }

void FlockWait::keep_only(std::size_t which) {
  std::vector<Helper> others = std::move(helpers_);
  helpers_.clear();
  helpers_.push_back(std::move(others[which]));
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(which));
  end(others);
}

void FlockWait::end(const std::vector<Helper>& helpers) {
  // By pidfd: whoever else reaps children here could let the pid be another's by now.
  for (const Helper& helper : helpers) {
    syscall(SYS_pidfd_send_signal, helper.process.get(), SIGKILL, nullptr, 0);
  }
  for (const Helper& helper : helpers) {
    while (::waitpid(helper.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

Result<void> FlockWait::add(const LockFile& file, int operation) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return cannot_wait("pipe");
  Helper helper{.report = Fd(ends[0])};
  const Fd write_end(ends[1]);
  std::array<char, 16> name{};  // as long as a process name may be
  std::snprintf(name.data(), name.size(), "dlock-%lld", static_cast<long long>(for_pid_));
  const pid_t parent = getpid();
  helper.pid = fork();
  if (helper.pid == 0) help(file.fd.get(), operation, write_end.get(), parent, name.data());
  if (helper.pid < 0) return cannot_wait("fork");
  helper.process.reset(static_cast<int>(syscall(SYS_pidfd_open, helper.pid, 0)));
  if (!helper.process) {
    const Error error = cannot_wait("pidfd_open");
    ::kill(helper.pid, SIGKILL);  // our child a moment ago, not reaped: still the same process
    while (::waitpid(helper.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return error;
  }
  helpers_.push_back(std::move(helper));
  return {};
}

Result<FlockWait::Outcome> FlockWait::wait(Deadline deadline, Cancel cancel, int watch_fd) {
  std::vector<pollfd> fds;
  for (const Helper& helper : helpers_) fds.push_back({helper.report.get(), POLLIN, 0});
  fds.push_back({cancel.fd(), POLLIN, 0});
  fds.push_back({watch_fd, POLLIN, 0});
  const int ready = util::poll(fds, deadline);
  // A grant first: who cancels looks at Cancel again anyway, who waits would lose its turn.
  for (std::size_t i = 0; i < helpers_.size(); ++i) {
    if (fds[i].revents == 0) continue;
    unsigned char byte = 0;
    if (::read(helpers_[i].report.get(), &byte, 1) != 1) {
      return Error{Errc::unreachable, "cannot wait for the lock: the helper process was killed"};
    }
    if (byte != 0) {
      return Error{Errc::unreachable, std::string("cannot lock: ") + std::strerror(byte)};
    }
    return Outcome{End::granted, i, helpers_[i].pid};
  }
  if (fds[helpers_.size()].revents != 0) return Outcome{End::cancelled};
  if (ready > 0) return Outcome{End::disturbed};
  return Outcome{End::timed_out};
}

Result<FlockWait::End> wait_flock(LockFile& file, int operation, std::int64_t for_pid,
                                  Deadline deadline, Cancel cancel) {
  FlockWait waiting(for_pid);
  if (auto ok = waiting.add(file, operation); !ok) return ok.error();
  auto outcome = waiting.wait(deadline, cancel, -1);
  if (!outcome) return outcome.error();
  if (outcome->end == FlockWait::End::granted) file.locked_by = outcome->by;
  return outcome->end;
}

}  // namespace dlock::file
