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
// Order.  gate, lock file, latch, mode, slot.  Nobody waits for anything while holding the latch;
// who waits for the lock file or for a slot holds the gate at most.
#include "backends/file/acquire.hpp"

#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "backends/file/acquisition.hpp"
#include "backends/file/file_lease.hpp"
#include "backends/file/name.hpp"
#include "backends/file/record.hpp"
#include "core/patience.hpp"
#include "util/host.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

// A latch is held for microseconds; longer than this its holder is stopped.  It says nothing about
// the lock, so requests that may not wait wait for it, too, and all at least so long.
constexpr Millis kLatchPatience{2'000};
// To find a file that nobody changes: it takes two.
constexpr int kTries = 100;
// What nobody waits for: the directory was opened once.
constexpr Millis kOpens{5'000};

Result<LockFile> take_latch(const Place& place, const Request& request, const Wait& wait) {
  const Deadline patience = std::max(wait.until, after(Clock::now(), kLatchPatience));
  for (;;) {
    auto latch = open_lock_file(place, latch_name(place.leaf));
    if (!latch) return latch.error();
    auto got = try_flock(*latch, place, LOCK_EX);
    if (!got) return got.error();
    if (!*got) {
      // Somebody may remove what a stopped process holds: look for another file now and then.
      const Deadline look = std::min(patience, after(Clock::now(), kLatchPatience));
      auto end = wait_flock(*latch, LOCK_EX, request.owner.pid, look, wait.cancel);
      if (!end) return end.error();
      if (*end == FlockWait::End::cancelled) {
        return Error{Errc::cancelled, "stopped waiting for " + place.shown};
      }
      if (*end == FlockWait::End::timed_out) {
        if (Clock::now() < patience) continue;
        return Error{Errc::unreachable, "another process holds " +
                                            util::printable(path_of(place, latch->name)) +
                                            " and does not go on: is it stopped?"};
      }
    }
    if (identity_of(*latch, place) == Identity::same) return latch;
  }
}

// What job~mode holds: `slots      0000000003`.
struct ModeLine {
  Mode mode = Mode::shared;
  unsigned slots = 1;
};

std::string format_mode(Mode mode, unsigned slots) {
  std::array<char, 32> line{};
  std::snprintf(line.data(), line.size(), "%-9.9s %010u\n", std::string(mode_name(mode)).c_str(),
                slots);
  return line.data();
}

ModeLine parse_mode_line(std::string_view text) {
  const auto space = text.find(' ');
  const auto mode = parse_mode(text.substr(0, space));
  const auto slots =
      text.size() < 20 ? std::nullopt : util::parse_int(text.substr(10, 10), 1, UINT32_MAX);
  if (!mode || !slots) return {};
  return {*mode, static_cast<unsigned>(*slots)};
}

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
    }
    auto step = take_main(LOCK_SH);
    if (!step) return step.error();
    if (*step == Step::moved) return std::nullopt;
    if (*step == Step::again) continue;

    auto latch = take_latch(*place_, request_, wait_);
    if (!latch) return latch.error();
    if (auto ok = take_mode(); !ok) return ok.error();
    Attempt attempt;
    if (slots) {
      auto attempted = take_slot(*place_, request_.slots);
      if (!attempted) return attempted.error();
      attempt = std::move(*attempted);
    }
    if (slots && !attempt.slot) {
      unlock(*mode_);
      unlock(*main_);
      unlock(*latch);
      auto woken = wait_for_slot(attempt.taken);
      if (!woken) return woken.error();
      if (*woken == Step::moved) return std::nullopt;
      continue;
    }
    std::vector<LockFile> locks;
    locks.push_back(std::move(*main_));
    locks.push_back(std::move(*mode_));
    std::optional<unsigned> number;
    if (slots) {
      locks.push_back(std::move(attempt.slot->file));
      number = attempt.slot->number;
    }
    auto lease = grant(std::move(locks), number);
    // Without the latch somebody else may have written the same fence.
    if (lease && identity_of(*latch, *place_) == Identity::other) {
      return Error{Errc::unreachable,
                   path_of(*place_, latch->name) + " was deleted while it was held"};
    }
    return lease;
  }
}

// With the latch.  Errc::conflict: there are holders in another mode.  What the file says counts
// only once it is locked.
Result<void> Acquisition::take_mode() {
  const std::string wanted = format_mode(request_.mode, request_.slots);
  for (int tries = 0; tries < kTries; ++tries) {
    auto file = open_lock_file(*place_, mode_file_name(place_->leaf));
    if (!file) return file.error();
    auto got = try_flock(*file, *place_, LOCK_SH);
    if (!got) return got.error();
    if (!*got) continue;  // somebody who has another latch changes it this moment
    std::string written = read_some(file->fd.get());
    if (written != wanted) {
      auto is_free = try_flock(*file, *place_, LOCK_EX);
      if (!is_free) return is_free.error();
      if (!*is_free) {
        const ModeLine held = parse_mode_line(written);
        return mode_conflict(request_, held.mode, held.slots);
      }
      if (::ftruncate(file->fd.get(), 0) != 0) {
        return errno_error(path_of(*place_, file->name), "cannot write", errno);
      }
      if (auto ok = write_at(*file, *place_, wanted, 0); !ok) return ok.error();
      unlock(*file);
      continue;
    }
    if (identity_of(*file, *place_) != Identity::same) continue;
    mode_ = std::move(*file);
    return {};
  }
  return Error{Errc::unreachable, "another program holds, or goes on changing, " +
                                      path_of(*place_, mode_file_name(place_->leaf))};
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
                                   .owner_id = request_.owner.id,
                                   .fence = *fence,
                                   .slot = slot,
                                   .locks = std::move(locks),
                                   .registration = std::move(registration_),
                                   .watch = std::move(watch_)}));
}

Result<std::unique_ptr<Lease>> acquire(std::shared_ptr<const LockDir>& dir, const Request& request,
                                       const Wait& wait) {
  Patience patience(wait, kOpens, request.key);
  for (;;) {
    auto place = place_of(dir, request.key, Missing::create);
    if (!place) return place.error();
    Acquisition acquisition(std::make_shared<const Place>(std::move(**place)), request, wait);
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
