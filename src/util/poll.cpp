#include "util/poll.hpp"

#include <sys/timerfd.h>

#include <cerrno>
#include <vector>

namespace dlock::util {
namespace {

// One timer a thread, made when a wait first has an end.
int armed_timer(Deadline deadline) {
  thread_local const Fd timer = make_timer();
  return set_timer(timer, deadline) ? timer.get() : -1;
}

int poll_once(std::span<pollfd> fds, int timeout_ms) {
  int ready;
  do {
    ready = ::poll(fds.data(), fds.size(), timeout_ms);
  } while (ready < 0 && errno == EINTR && timeout_ms <= 0);
  return ready < 0 ? 0 : ready;
}

}  // namespace

int poll(std::span<pollfd> fds, Deadline deadline) {
  if (deadline == kNever) return poll_once(fds, -1);
  for (;;) {
    if (Clock::now() >= deadline) return poll_once(fds, 0);
    const int timer = armed_timer(deadline);
    if (timer < 0) {  // no descriptor left: the plain timeout is right but for a suspend
      const int ready = poll_once(
          fds, static_cast<int>(std::min<Millis::rep>(remaining(deadline).count(), 60'000)));
      if (ready > 0) return ready;
      continue;
    }
    std::vector<pollfd> all(fds.begin(), fds.end());
    all.push_back({timer, POLLIN, 0});
    int ready = poll_once(all, -1);
    if (all.back().revents != 0) --ready;
    for (std::size_t i = 0; i < fds.size(); ++i) fds[i].revents = all[i].revents;
    if (ready > 0) return ready;
  }
}

bool wait_readable(int fd, Deadline deadline) {
  pollfd item{fd, POLLIN, 0};
  return poll({&item, 1}, deadline) > 0;
}

Fd make_timer() { return Fd(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)); }

bool set_timer(const Fd& timer, Deadline instant) {
  const auto since_boot = instant.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_boot);
  itimerspec spec{};
  spec.it_value.tv_sec = seconds.count();
  spec.it_value.tv_nsec = (since_boot - seconds).count();
  return timerfd_settime(timer.get(), TFD_TIMER_ABSTIME, &spec, nullptr) == 0;
}

}  // namespace dlock::util
