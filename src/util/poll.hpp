// Waiting: the one place where dlock sleeps.
#pragma once

#include <poll.h>

#include <span>

#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dlock::util {

/// poll(2) until `deadline`, an instant of CLOCK_BOOTTIME: unlike poll's own timeout it passes
/// while the machine is suspended.  Entries with a negative fd are skipped.  Returns how many
/// entries have revents set, 0 once the deadline has passed.  A signal does not end the wait.  No
/// memory is allocated for up to seven entries, but by the first wait of a thread.
int poll(std::span<pollfd> fds, Deadline deadline);

/// Waits until `fd` is readable (or at its end); false when the deadline came first.
bool wait_readable(int fd, Deadline deadline);

/// A descriptor that becomes readable at the instant it is set to, also of CLOCK_BOOTTIME.  None if
/// the system has no more to give.
Fd make_timer();
/// Readable from `instant` on and not before, whatever it was set to; false if that cannot be done.
bool set_timer(const Fd& timer, Deadline instant);

}  // namespace dlock::util
