// The half of an acquisition that waits, in the kernel's queue or for a slot; and what it says of
// who is in the way.
//
// A hand-over is between the kernel and the one whom it lets in.  The other waiters check who holds
// the lock (see WaitIntervals) if they have somebody to tell, by one small read.
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "backends/file/acquisition.hpp"
#include "backends/file/inspect.hpp"
#include "backends/file/name.hpp"
#include "util/exchange.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

using util::in_quotes;

constexpr Millis kBetweenWakes{100};
constexpr unsigned kMostWakes = 20;

}  // namespace

Error Acquisition::cancelled() const {
  return {Errc::cancelled, "stopped waiting for " + in_quotes(request_.key)};
}

Error Acquisition::busy() const {
  std::string by;
  if (told_ && !told_->holders.empty()) {
    const Owner& owner = told_->holders.front().owner;
    by = " by " + util::printable(owner.host) + " pid " + std::to_string(owner.pid);
  }
  return {Errc::busy, in_quotes(request_.key) + " is held" + by};
}

// Who is in the way?  Errc::conflict if that is of another kind, else tells on_blocked.
Result<void> Acquisition::tell_of_holders() {
  told_fence_ = newest_fence(*place_);
  auto seen = who_is_in_the_way(*place_, request_.key);
  if (!seen) return seen.error();
  const Claim held{seen->mode, seen->slots};
  for (const LockInfo::Holder& holder : seen->holders) {
    if (holder.foreign || modes_mix(request_.claim(), held)) continue;
    return mode_conflict(request_.key, request_.claim(), held);
  }
  if (seen->holders.empty()) return {};
  if (wait_.on_blocked) wait_.on_blocked(*seen);
  told_ = std::move(*seen);
  return {};
}

// Whether `file`, which we wait for or have just locked, is what others lock, too.
Result<Acquisition::Step> Acquisition::where(const LockFile& file) const {
  const auto there = place_->dir->still_there();
  if (!there && there.error().code != Errc::lost) return there.error();
  if (!there) return Step::moved;
  switch (identity_of(file, *place_)) {
    case Identity::same:
      return Step::ready;
    case Identity::other:
      return Step::again;
    case Identity::unknown:
      break;
  }
  return errno_error(path_of(*place_, file.name), "lock file", errno);
}

// Errc::busy if there is no time to wait.
Result<void> Acquisition::begin_to_wait() {
  if (!may_wait()) {
    if (auto ok = tell_of_holders(); !ok) return ok.error();
    return busy();
  }
  if (wait_.cancel.requested()) return cancelled();
  registration_->wait(record());
  return {};
}

// Waits until poll() says so, as long as `file` is in its place.
Result<Acquisition::Step> Acquisition::wait_for(const LockFile& file, const Poll& poll) {
  const bool watched = watch_.add(file.fd.get(), Watch::For::replaced) &&
                       watch_.add(place_->dir->fd(), Watch::For::moved_directory);
  const bool follows = wait_.on_blocked && !wait_.once;
  bool must_look = true;
  Millis until_look = intervals_.first_holders;
  for (;;) {
    // After the watch, so that nothing is missed.
    auto here = where(file);
    if (!here || *here != Step::ready) return here;
    if (must_look || (follows && newest_fence(*place_) != told_fence_)) {
      if (auto ok = tell_of_holders(); !ok) return ok.error();
    }
    must_look = !told_;
    if (told_) until_look = intervals_.holders;
    Deadline look = watched ? kNever : after(Clock::now(), intervals_.file);
    if (follows || must_look) {
      look = after(Clock::now(), std::exchange(until_look, intervals_.holders));
    }
    auto end = poll(std::min(wait_.until, look));
    if (!end) return end.error();
    switch (*end) {
      case FlockWait::End::granted:
        return Step::ready;
      case FlockWait::End::cancelled:
        return cancelled();
      case FlockWait::End::timed_out:
        if (!may_wait()) return busy();
        break;
      case FlockWait::End::disturbed:
        watch_.drain();
    }
  }
}

// Waits in the kernel's queue for one file.
Result<Acquisition::Step> Acquisition::wait_for_lock(LockFile& file, int operation) {
  const bool is_main = file.name == place_->leaf;
  if (!may_wait()) {
    if (auto ok = is_main ? Result<void>() : try_without_gate(); !ok) return ok.error();
    if (early_) return Step::ready;
  }
  const Deadline asked = Clock::now();
  if (auto ok = begin_to_wait(); !ok) return ok.error();
  FlockWait waiting;
  if (auto ok = waiting.start(*place_, file, operation, request_.owner.pid,
                              is_main ? registration_->fd() : -1);
      !ok) {
    return ok.error();
  }
  if (is_main) registration_->locks_by(waiting.pid());
  const Millis between_tries = wait_.once ? intervals_.file : intervals_.holders;
  Deadline next_try = is_main ? kNever : std::min(after(Clock::now(), between_tries), wait_.until);
  auto step = wait_for(file, [&](Deadline deadline) -> Result<FlockWait::End> {
    auto end = waiting.wait(std::min(deadline, next_try), wait_.cancel, watch_.fd());
    if (end && *end == FlockWait::End::timed_out && Clock::now() >= next_try) {
      if (auto ok = try_without_gate(); !ok) return ok.error();
      if (early_) return FlockWait::End::granted;
      next_try = after(Clock::now(), between_tries);
    }
    return end;
  });
  watch_.clear();
  if (step && *step == Step::ready) file.locked_by = waiting.pid();
  if (util::exchanges_shown()) {
    const char* const done = step && *step == Step::ready ? "granted" : "the file was replaced";
    util::log_exchange("lock file " + path_of(*place_, file.name), "wait",
                       step ? done : step.error().message, asked);
  }
  return step;
}

// The lock file, which is main_ then.
Result<bool> Acquisition::try_main(int operation) {
  auto file = open_lock_file(*place_, place_->leaf);
  if (!file) return file.error();
  main_ = std::move(*file);
  registration_->locks_by_itself();
  return try_flock(*main_, *place_, operation);
}

// Ready: main_ is locked, and is what others lock, too.
Result<Acquisition::Step> Acquisition::take_main(int operation) {
  auto got = try_main(operation);
  if (!got) return got.error();
  if (!*got) {
    auto step = wait_for_lock(*main_, operation);
    if (!step || *step != Step::ready) return step;
  }
  auto here = where(*main_);
  if (!here || *here != Step::ready) main_.reset();
  return here;
}

// One try for a slot, which is left in early_.
Result<void> Acquisition::try_without_gate() {
  auto got = try_main(LOCK_SH);
  if (!got) return got.error();
  if (!*got) return {};
  auto here = where(*main_);
  if (!here) return here.error();
  if (*here != Step::ready) {
    unlock(*main_);
    return {};
  }
  std::vector<Fd> taken;
  auto lease = take_seat(taken);
  if (!lease) return lease.error();
  if (*lease) early_ = std::move(**lease);
  return {};
}

// Ready: we are the slots waiter that is next, or have got a slot before that.
Result<Acquisition::Step> Acquisition::pass_gate() {
  auto gate = open_lock_file(*place_, gate_name(place_->leaf));
  if (!gate) return gate.error();
  auto got = try_flock(*gate, *place_, LOCK_EX);
  if (!got) return got.error();
  if (!*got) {
    auto step = wait_for_lock(*gate, LOCK_EX);
    if (!step || *step != Step::ready || early_) return step;
  }
  auto here = where(*gate);
  if (here && *here == Step::ready) gate_ = std::move(*gate);
  return here;
}

// All slots are taken: waits until one may be free.
Result<Acquisition::Step> Acquisition::wait_for_slot(const std::vector<Fd>& taken) {
  // Who locks a slot without having it open for writing, as no dlock does, wakes us for nothing,
  // and again and again.
  const Deadline again = after(woken_, kBetweenWakes);
  wakes_ = Clock::now() < again ? wakes_ + 1 : 0;
  if (wakes_ > kMostWakes) util::wait_readable(wait_.cancel.fd(), again);
  if (auto ok = begin_to_wait(); !ok) return ok.error();
  auto main = open_lock_file(*place_, place_->leaf);  // to watch; not locked
  if (!main) return main.error();
  std::vector<pollfd> fds{{wait_.cancel.fd(), POLLIN, 0}, {-1, POLLIN, 0}};
  for (const Fd& fd : taken) fds.push_back({fd.get(), POLLIN, 0});
  auto step = wait_for(*main, [&](Deadline deadline) -> Result<FlockWait::End> {
    fds[1].fd = watch_.fd();
    const int ready = util::poll(fds, deadline);
    if (ready == 0) return FlockWait::End::timed_out;
    if (fds[0].revents != 0) return FlockWait::End::cancelled;
    bool freed = false;
    for (std::size_t i = 2; i < fds.size(); ++i) {
      if (fds[i].revents == 0) continue;
      std::array<char, 64> bytes;
      while (::read(fds[i].fd, bytes.data(), bytes.size()) > 0) {
      }
      freed = true;
    }
    if (freed) woken_ = Clock::now();
    return freed ? FlockWait::End::granted : FlockWait::End::disturbed;
  });
  watch_.clear();
  return step;
}

}  // namespace dlock::file
