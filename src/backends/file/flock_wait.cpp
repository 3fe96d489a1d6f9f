// The kernel has a queue for flock(2), but the call cannot be polled, and only a signal, which may
// arrive a moment too early, interrupts a blocked thread.  So a child process, the helper, calls
// flock(2).  It shares the open file description, so a lock that it is granted is ours, and it can
// be killed at any time.  Then one of three things is true:
//   - It had not been granted the lock: its death removes it from the queue.
//   - It had been, and has reported that: the description stays locked without the helper.
//   - It had been, and was killed before it could report: the description is locked all the same. A
//     caller that gives up closes it, and no copy is left, since we wait for the helper's death.
//
// The helper is forked from a process that may have threads, so it does nothing but system calls.
// It closes all descriptors but its own: a copy of another one would keep a pipe open, or another
// lock locked.  It dies with its parent.
//
// /proc/locks shows the helper's pid for the lock, even when it is long dead.  So the helper writes
// its pid into the registration before it asks for the lock, where readers of both find it.
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

#include "backends/file/registration.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

void close_from_to(unsigned first, unsigned last) {
  if (first > last || syscall(SYS_close_range, first, last, 0) == 0) return;
  // Linux before 5.9.  Descriptors above a thousand are the rare case of a rare case.
  for (unsigned fd = first; fd <= last && fd < 1'024; ++fd) ::close(static_cast<int>(fd));
}

// `kept` is sorted.
void close_all_but(std::span<const int> kept) {
  unsigned next = 0;
  for (const int fd : kept) {
    const auto keep = static_cast<unsigned>(fd);
    if (keep > next) close_from_to(next, keep - 1);
    next = keep + 1;
  }
  close_from_to(next, ~0U);
}

struct Help {
  std::span<const FlockStep> steps;
  std::span<const int> kept;  // their descriptors and `report`, sorted
  int report = -1;
  pid_t parent = 0;
  const char* name = nullptr;
  int registration = -1;
};

[[noreturn]] void help(const Help& call) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != call.parent) _exit(1);  // it died before the line above
  prctl(PR_SET_NAME, call.name);
  if (call.registration >= 0) write_pid(call.registration, getpid());
  close_all_but(call.kept);
  unsigned char error = 0;
  for (const FlockStep& step : call.steps) {
    int outcome;
    do {
      outcome = ::flock(step.fd, step.operation);
    } while (outcome != 0 && errno == EINTR);
    if (outcome == 0) continue;
    error = static_cast<unsigned char>(errno);
    break;
  }
  [[maybe_unused]] const ssize_t wrote = ::write(call.report, &error, 1);
  _exit(0);
}

Error cannot_wait(const char* what) {
  return {Errc::unreachable,
          std::string("cannot wait for the lock: ") + what + ": " + std::strerror(errno)};
}

}  // namespace

FlockWait::~FlockWait() { stop_helper(); }

void FlockWait::stop_helper() {
  if (pid_ == 0) return;
  // By pidfd: if another part of this process has reaped the child, its pid may be in use again.
  syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}

Result<void> FlockWait::start(std::string path, std::span<const FlockStep> steps,
                              std::int64_t for_pid, int registration) {
  path_ = std::move(path);
  steps_.assign(steps.begin(), steps.end());
  for_pid_ = for_pid;
  registration_ = registration;
  return start_helper();
}

Result<void> FlockWait::start_helper() {
  stop_helper();
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return cannot_wait("pipe");
  report_.reset(ends[0]);
  const Fd write_end(ends[1]);
  std::array<char, 16> name{};  // as long as a process name may be
  std::snprintf(name.data(), name.size(), "dlock-%lld", static_cast<long long>(for_pid_));
  std::vector<int> kept{write_end.get()};
  for (const FlockStep& step : steps_) kept.push_back(step.fd);
  std::sort(kept.begin(), kept.end());
  const Help call{.steps = steps_,
                  .kept = kept,
                  .report = write_end.get(),
                  .parent = getpid(),
                  .name = name.data(),
                  .registration = registration_};
  const pid_t pid = fork();
  if (pid == 0) help(call);
  if (pid < 0) return cannot_wait("fork");
  process_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!process_) {
    const Error error = cannot_wait("pidfd_open");
    ::kill(pid, SIGKILL);  // our child a moment ago, not reaped: still the same process
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return error;
  }
  pid_ = pid;
  return {};
}

Result<FlockWait::End> FlockWait::wait(Deadline deadline, Cancel cancel) {
  for (;;) {
    std::array<pollfd, 2> fds{pollfd{report_.get(), POLLIN, 0}, pollfd{cancel.fd(), POLLIN, 0}};
    if (util::poll(fds, deadline) == 0) return End::timed_out;
    // A grant first: a caller that cancels looks at Cancel again, one that waits would lose its
    // turn.
    if (fds[0].revents == 0) return End::cancelled;
    unsigned char byte = 0;
    if (::read(report_.get(), &byte, 1) == 1) {
      if (byte != 0) return flock_error(path_, byte);
      return End::granted;
    }
    // Some steps may have been granted before it was killed.
    for (const FlockStep& step : steps_) ::flock(step.fd, LOCK_UN);
    if (auto ok = start_helper(); !ok) return ok.error();
  }
}

Result<FlockWait::End> wait_flock(const Place& place, LockFile& file, int operation,
                                  std::int64_t for_pid, Deadline deadline, Cancel cancel) {
  FlockWait waiting;
  const FlockStep step{file.fd.get(), operation};
  if (auto ok = waiting.start(path_of(place, file.name), {&step, 1}, for_pid, -1); !ok) {
    return ok.error();
  }
  auto end = waiting.wait(deadline, cancel);
  if (end && *end == FlockWait::End::granted) file.locked_by = waiting.pid();
  return end;
}

}  // namespace dlock::file
