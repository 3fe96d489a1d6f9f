#include "util/poll.hpp"

#include <pthread.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

namespace dlock::util {
namespace {

// One timer a thread, made by its first wait: later there may be no memory for it.  The key closes
// it at the end of its thread.  A thread_local could do that, too; but for its destructor the
// dynamic linker resolves a function of libc, which costs both processes of a run a dozen page
// faults.
const Fd& timer_of_thread() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    pthread_key_create(&made, [](void* timer) { delete static_cast<Fd*>(timer); });
    return made;
  }();
  auto* timer = static_cast<Fd*>(pthread_getspecific(key));
  if (timer == nullptr) {
    timer = new Fd(make_timer());
    pthread_setspecific(key, timer);
  }
  return *timer;
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
  const Fd& timer = timer_of_thread();
  if (deadline == kNever) return poll_once(fds, -1);
  std::array<pollfd, 8> few{};
  std::vector<pollfd> many;
  const bool fits = fds.size() < few.size();
  if (!fits) many.resize(fds.size() + 1);
  const std::span<pollfd> all =
      fits ? std::span(few).first(fds.size() + 1) : std::span<pollfd>(many);
  for (;;) {
    if (Clock::now() >= deadline) return poll_once(fds, 0);
    if (!set_timer(timer, deadline)) {
      // No descriptor was left for a timer.  The plain timeout is right but for a suspend.
      const int ready = poll_once(
          fds, static_cast<int>(std::min<Millis::rep>(remaining(deadline).count(), 60'000)));
      if (ready > 0) return ready;
      continue;
    }
    std::copy(fds.begin(), fds.end(), all.begin());
    all.back() = {timer.get(), POLLIN, 0};
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
