// Files of a key:
//   job          the lock file.  Exclusive: LOCK_EX.  Shared and slots: LOCK_SH.
//   job~mode     shared and slots: LOCK_SH; says which of the two, and how many slots.
//   job~slot1..  slots: LOCK_EX on one of them (slots.cpp).
//   job~latch    LOCK_EX for the moment in which a shared or a slots lock is granted.
//   job~gate     LOCK_EX for the slots waiter that is next.
//   job~w        a folder: who holds and who waits (registration.hpp).
//
// Modes.  The kernel keeps exclusive and the others apart.  Whoever wants another mode than
// job~mode has must be granted LOCK_EX on it, which nobody is while there are holders of that mode.
//
// Slots.  All holders agree on N by job~mode, there are only N slots, and each is had with LOCK_EX:
// never N + 1 holders.
//
// Unlink.  What was locked may have been deleted or replaced meanwhile, and the directory, too, so
// that others lock another file of that name: compare after the lock, and begin again.  A holder
// compares when it renews.
//
// Fence.  Written with LOCK_EX, or with LOCK_SH and the latch: never by two at a time.
//
// Latch.  To read the mode and to take it, and to find a free slot and to take it, are two steps
// each.
//
// Records.  Nothing of this depends on registrations.  They come before any lock and go after all,
// so that what /proc/locks has of a process that is not registered is another program's.
//
// Cleaners.  systemd-tmpfiles deletes what is old in /tmp, but for a directory that somebody has
// flocked.  Nobody waits for that, and it may fail.
//
// Order.  gate, lock file, latch, mode, slot.  Nobody waits for anything while holding the latch;
// who waits for the lock file or for a slot holds the gate at most.
//
// Gate.  Whoever has it may be stopped, or its container frozen, while slots are free.  So those
// who wait for the gate try for a slot now and then, without it.
#include "backends/file/acquire.hpp"

#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "backends/file/acquisition.hpp"
#include "backends/file/file_lease.hpp"
#include "backends/file/mode_file.hpp"
#include "backends/file/name.hpp"
#include "backends/file/record.hpp"
#include "core/patience.hpp"
#include "util/host.hpp"
#include "util/log.hpp"

namespace dlock::file {
namespace {

// What nobody waits for: the directory was opened once.
constexpr Millis kOpens{5'000};

}  // namespace

Acquisition::MaybeLease Acquisition::run() {
  auto registration = Registration::make(place_);
  if (!registration) return registration.error();
  registration_ = std::move(*registration);
  return request_.mode == Mode::exclusive ? exclusive() : seated();
}

Acquisition::MaybeLease Acquisition::exclusive() {
  for (;;) {
    auto step = take_main(LOCK_EX);
    if (!step) return step.error();
    if (*step == Step::moved) return std::nullopt;
    if (*step == Step::again) continue;
    std::vector<LockFile> locks;
    locks.push_back(std::move(*main_));
    return grant(std::move(locks), std::nullopt);
  }
}

Acquisition::MaybeLease Acquisition::seated() {
  const bool slots = request_.mode == Mode::slots;
  if (slots && request_.slots > 100) room_.emplace();
  for (;;) {
    if (slots && !gate_ && may_wait()) {
      auto step = pass_gate();
      if (!step) return step.error();
      if (*step == Step::moved) return std::nullopt;
      if (*step == Step::again) continue;
      if (early_) return std::optional(std::move(early_));
    }
    auto step = take_main(LOCK_SH);
    if (!step) return step.error();
    if (*step == Step::moved) return std::nullopt;
    if (*step == Step::again) continue;
    std::vector<Fd> taken;
    auto lease = take_seat(taken);
    if (!lease || *lease) return lease;
    auto woken = wait_for_slot(taken);
    if (!woken) return woken.error();
    if (*woken == Step::moved) return std::nullopt;
  }
}

// With the lock file locked.  None: all slots are taken, nothing is locked any more, and `taken` is
// what to wait for.
Acquisition::MaybeLease Acquisition::take_seat(std::vector<Fd>& taken) {
  auto latch = take_latch(*place_, request_, wait_);
  if (!latch) return latch.error();
  auto mode = take_mode(*place_, request_);
  if (!mode) return mode.error();
  std::vector<LockFile> locks;
  std::optional<unsigned> number;
  if (request_.mode == Mode::slots) {
    auto attempt = take_slot(*place_, request_.slots);
    if (!attempt) return attempt.error();
    if (!attempt->slot) {
      unlock(*mode);
      unlock(*main_);
      unlock(*latch);
      taken = std::move(attempt->taken);
      return std::nullopt;
    }
    number = attempt->slot->number;
    locks.push_back(std::move(attempt->slot->file));
  }
  locks.insert(locks.begin(), std::move(*mode));
  locks.insert(locks.begin(), std::move(*main_));
  auto lease = grant(std::move(locks), number);
  // Without the latch somebody else may have written the same fence.
  if (lease && identity_of(*latch, *place_) == Identity::other) {
    return Error{Errc::unreachable,
                 path_of(*place_, latch->name) + " was deleted while it was held"};
  }
  return lease;
}

Record Acquisition::record() const {
  Record record{.owner = request_.owner, .mode = request_.mode, .slots = request_.slots};
  record.since_ns = Clock::now().time_since_epoch().count();
  return record;
}

// Of the next grant, which it is written for.  None if the lock file is not ours to write to.
Result<std::optional<std::uint64_t>> Acquisition::write_fence(LockFile& main) {
  const Content last = read_lock_file(main.fd.get());
  if (last.foreign) {
    util::log(util::Level::warning,
              "lock file " + place_->shown +
                  " has content that dlock did not write: the lock works, but DLOCK_FENCE is not " +
                  "set; remove the file while nobody holds the lock");
    return std::optional<std::uint64_t>();
  }
  const NextGrant next = next_grant(last.header, util::utc_now_ms(), request_.mode, request_.slots);
  if (auto ok = write_at(main, *place_, format_header(next.header), 0); !ok) return ok.error();
  if (next.sync) {
    if (::fdatasync(main.fd.get()) != 0) {
      return errno_error(place_->shown, "cannot sync lock file", errno);
    }
    if (!last.header) ::fsync(place_->fd());  // not every file system can
  }
  return std::optional(next.header.fence);
}

// `locks` are all that were taken, the lock file first.
Acquisition::MaybeLease Acquisition::grant(std::vector<LockFile> locks,
                                           std::optional<unsigned> slot) {
  auto fence = write_fence(locks.front());
  if (!fence) return fence.error();
  Record granted = record();
  granted.acquired_at = util::utc_now();
  granted.fence = *fence;
  granted.slot = slot;
  registration_->hold(granted, locks.front().locked_by);
  return std::optional(make_lease({.place = place_,
                                   .key = request_.key,
                                   .owner = request_.owner,
                                   .fence = *fence,
                                   .slot = slot,
                                   .locks = std::move(locks),
                                   .registration = std::move(registration_),
                                   .watch = std::move(watch_)}));
}

Result<std::unique_ptr<Lease>> acquire(std::shared_ptr<const LockDir>& dir, const Request& request,
                                       const Wait& wait, const WaitIntervals& intervals) {
  Patience patience(wait, kOpens, request.key);
  for (;;) {
    (void)::flock(dir->fd(), LOCK_SH | LOCK_NB);
    auto place = place_of(dir, request.key, Missing::create);
    if (!place) return place.error();
    Acquisition acquisition(std::make_shared<const Place>(std::move(**place)), request, wait,
                            intervals);
    auto lease = acquisition.run();
    if (!lease) return lease.error();
    if (*lease) return std::move(**lease);
    patience.answered();
    for (;;) {
      auto moved = dir->open_again();
      if (moved) {
        dir = std::move(*moved);
        break;
      }
      if (auto ok = patience.pause(moved.error()); !ok) return ok.error();
    }
    patience.recovered();
  }
}

}  // namespace dlock::file
