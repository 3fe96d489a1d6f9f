// Files of a key.  job        the lock file.  Exclusive: LOCK_EX.  Shared and slots: LOCK_SH.
//                  job~1 ...  seats: a shared or slots holder has LOCK_EX on one; its record.
//                  job~       the latch: LOCK_EX for the moment in which a seat is taken.
//                  job~gate   LOCK_EX for the slots waiter that is next.
//
// Modes.   The kernel keeps exclusive and the others apart.  Shared and slots of different numbers
//          are told apart by the header: under the latch it is either what is asked for, or its
//          holders are looked for, and only if there are none it is rewritten.  A holder has its
//          record in its seat before it lets go of the latch, so none is overlooked.
// Slots.   There are only N seats, each one with LOCK_EX: never N + 1 holders, whatever happens.
// Unlink.  What was locked may have been deleted or replaced meanwhile, so that others lock another
//          file of that name: compare after the lock, and begin again.
// Force.   force_release() compares the record and then replaces the file.  A grant must not come
//          between the two.  It marks the file, then reads the record; we write the record, then
//          read the mark.  So either it sees our record and leaves the file alone, or we see its
//          mark, wait for the latch, and see whether the file was replaced.
// Fence.   Written with LOCK_EX, or with LOCK_SH and the latch: never by two at a time.
// Order.   Nobody waits for anything while holding the latch; the gate's holder waits for seats, a
//          seat's taker for nothing: it gives the seat back before it waits for the lock file.
#include "backends/file/acquire.hpp"

#include <sched.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "backends/file/acquisition.hpp"
#include "backends/file/file_lease.hpp"
#include "backends/file/name.hpp"
#include "backends/file/record.hpp"
#include "util/boot.hpp"
#include "util/host.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

// A latch is held for microseconds; longer than this its holder is stopped.  Also for requests that
// may not wait: the latch says nothing about the lock.
constexpr Millis kLatchPatience{2'000};

}  // namespace

Result<std::unique_ptr<Lease>> Acquisition::exclusive() {
  for (;;) {
    auto file = open_lock_file(place_, place_.leaf);
    if (!file) return file.error();
    main_ = std::move(*file);
    auto got = try_flock(*main_, place_, LOCK_EX);
    if (!got) return got.error();
    if (!*got) {
      auto step = wait_for_main(LOCK_EX);
      if (!step) return step.error();
      if (*step == Step::again) continue;
    }
    auto lease = grant_exclusive();
    if (!lease) return lease.error();
    if (*lease) return std::move(**lease);
  }
}

Result<std::unique_ptr<Lease>> Acquisition::seated() {
  for (;;) {
    if (!main_) {
      auto file = open_lock_file(place_, place_.leaf);
      if (!file) return file.error();
      main_ = std::move(*file);
      auto got = try_flock(*main_, place_, LOCK_SH);
      if (!got) return got.error();
      if (!*got) {
        seat_.reset();  // others may have it while we wait
        auto step = wait_for_main(LOCK_SH);
        if (!step) return step.error();
        if (*step == Step::again) {
          main_.reset();
          continue;
        }
      }
    }
    auto latch = take_latch(place_, request_.owner.pid, wait_.until, wait_.cancel);
    if (!latch) return latch.error();
    auto lease = grant_seat();
    if (!lease) return lease.error();
    if (*lease) return std::move(**lease);
    const bool full = main_.has_value();  // else a file was replaced under our hands
    main_.reset();
    seat_.reset();
    latch->fd.reset();
    if (!full) continue;
    auto step = wait_for_seat();
    if (!step) return step.error();
  }
}

// --- granting

std::string Acquisition::record_line(std::optional<std::uint64_t> fence, pid_t lock_pid,
                                     pid_t main_pid) const {
  Record record{.owner = request_.owner, .mode = request_.mode, .slots = request_.slots};
  record.acquired_at = util::utc_now();
  record.fence = fence;
  record.boot = util::boot_id();
  record.acquired_ns = Clock::now().time_since_epoch().count();
  record.pid_namespace = util::pid_namespace();
  record.lock_pid = lock_pid;
  record.main_pid = main_pid;
  return format_record(record);
}

// Writes the header of the next grant and, for an exclusive one, the record behind it.
Result<std::optional<std::uint64_t>> Acquisition::write_grant(const Content& last,
                                                              std::string* record) {
  if (last.foreign) {
    util::log(util::Level::warning,
              "lock file " + place_.shown +
                  " holds something that dlock did not write: the lock works, but has no fence " +
                  "and its holder is not shown; remove the file while nobody holds it");
    return std::optional<std::uint64_t>();
  }
  const NextGrant next = next_grant(last.header, util::utc_now_ms(), request_.mode, request_.slots);
  std::string text = format_header(next.header);
  if (record != nullptr) {
    *record = record_line(next.header.fence, main_->locked_by, main_->locked_by);
    text += *record;
  }
  if (auto ok = write_at(*main_, place_, text, 0); !ok) return ok.error();
  if (next.sync) {
    if (::fdatasync(main_->fd.get()) != 0) {
      return errno_error(place_.shown, "cannot sync lock file", errno);
    }
    if (!last.header) ::fsync(place_.fd());  // not every file system can
  }
  return std::optional(next.header.fence);
}

Acquisition::MaybeLease Acquisition::grant_exclusive() {
  const Content last = read_lock_file(main_->fd.get());
  // The look for a replaced file comes last and tells foreign content of one that is gone.
  std::string record;
  std::optional<std::uint64_t> fence;
  if (!last.foreign || identity_of(*main_, place_) == Identity::same) {
    auto written = write_grant(last, &record);
    if (!written) return written.error();
    fence = *written;
  }
  Identity identity = identity_of(*main_, place_);
  if (identity == Identity::marked) {
    auto latch = take_latch(place_, request_.owner.pid, wait_.until, wait_.cancel);
    if (!latch) return latch.error();
    identity = identity_of(*main_, place_);
    if (identity == Identity::marked) {  // whoever marked it is dead
      set_mark(*main_, false);
      identity = Identity::same;
    }
  }
  if (identity == Identity::unknown) return errno_error(place_.shown, "lock file", errno);
  if (identity == Identity::other) return std::nullopt;
  auto lease = make_lease({.place = std::move(place_),
                           .key = request_.key,
                           .owner_id = request_.owner.id,
                           .fence = fence,
                           .recorded = !record.empty(),
                           .main = std::move(*main_),
                           .watch = std::move(watch_)});
  if (!lease) return lease.error();
  return std::optional(std::move(*lease));
}

// With the latch.  None: there is no seat, or (then main_ is none too) a file was replaced.
Acquisition::MaybeLease Acquisition::grant_seat() {
  const Identity identity = identity_of(*main_, place_);
  if (identity == Identity::unknown) return errno_error(place_.shown, "lock file", errno);
  if (identity == Identity::other) {
    main_.reset();
    return std::nullopt;
  }
  const Content last = read_lock_file(main_->fd.get());
  // Behind an empty file or an exclusive header there is no seat's holder: it would have written
  // its own.
  const bool other_mode =
      last.header && last.header->mode != Mode::exclusive &&
      (last.header->mode != request_.mode || last.header->slots != request_.slots);
  if (last.foreign || other_mode) {
    if (auto ok = check_seats(); !ok) return ok.error();
  }
  if (seat_ && identity_of(*seat_, place_) != Identity::same) seat_.reset();
  if (!seat_) {
    auto taken = take_seat();
    if (!taken) return taken.error();
    if (!*taken) return std::nullopt;
  }
  auto fence = write_grant(last, nullptr);
  if (!fence) return fence.error();
  const std::string record = record_line(*fence, seat_->locked_by, main_->locked_by);
  if (auto ok = write_at(*seat_, place_, record, 0); !ok) return ok.error();
  auto lease = make_lease({.place = std::move(place_),
                           .key = request_.key,
                           .owner_id = request_.owner.id,
                           .fence = *fence,
                           .recorded = true,
                           .main = std::move(*main_),
                           .seat = std::move(seat_),
                           .watch = std::move(watch_)});
  if (!lease) return lease.error();
  return std::optional(std::move(*lease));
}

// With the latch: is any seat held in another mode?  The locks on the seats tell, one by one, and
// not /proc/locks: this must be right.  A seat may be locked without having a holder, by a waiter
// that is yet to come here, or by what is left of a dying process; then it is refused for nothing
// if the record that it still has is of another mode, as it would have been a moment before.
Result<void> Acquisition::check_seats() const {
  for (unsigned number = 1;; ++number) {
    auto seat = open_lock_file(place_, seat_name(place_.leaf, number), Missing::leave);
    if (!seat) return seat.error();
    if (!*seat) return {};
    if (seat_ && (*seat)->inode == seat_->inode) continue;
    for (int tries = 1;; ++tries) {
      auto is_free = try_flock(**seat, place_, LOCK_EX);
      if (!is_free) return is_free.error();
      if (*is_free) break;
      const auto record = read_seat((*seat)->fd.get());
      if (!record || record->given_up) break;
      if (record->mode == request_.mode && record->slots == request_.slots) break;
      if (tries == kSpuriousRefusals) return mode_conflict(request_, record->mode, record->slots);
      sched_yield();  // a reader's probe (inspect.cpp) is over at once
    }
  }
}

Result<bool> Acquisition::take_seat() {
  const unsigned last = request_.mode == Mode::slots ? request_.slots : UINT32_MAX;
  for (unsigned number = 1;; ++number) {
    auto seat = open_lock_file(place_, seat_name(place_.leaf, number));
    if (!seat) return seat.error();
    auto got = try_flock(*seat, place_, LOCK_EX);
    if (!got) return got.error();
    if (*got) {
      seat_ = std::move(*seat);
      return true;
    }
    if (number == last) return false;
  }
}

Result<LockFile> take_latch(const Place& place, std::int64_t for_pid, Deadline deadline,
                            Cancel cancel) {
  for (;;) {
    auto latch = open_lock_file(place, latch_name(place.leaf));
    if (!latch) return latch.error();
    auto got = try_flock(*latch, place, LOCK_EX);
    if (!got) return got.error();
    if (!*got) {
      const Deadline patience = std::max(deadline, after(Clock::now(), kLatchPatience));
      auto end = wait_flock(*latch, LOCK_EX, for_pid, patience, cancel);
      if (!end) return end.error();
      if (*end == FlockWait::End::cancelled) {
        return Error{Errc::cancelled, "stopped waiting for " + place.shown};
      }
      if (*end == FlockWait::End::timed_out) {
        return Error{Errc::busy, "another dlock holds " + util::printable(place.shown) +
                                     "~ and does not go on: is it stopped?"};
      }
    }
    if (identity_of(*latch, place) == Identity::same) return latch;
  }
}

Result<std::unique_ptr<Lease>> acquire(const std::shared_ptr<const LockDir>& dir,
                                       const Request& request, const Wait& wait) {
  auto place = place_of(dir, request.key, Missing::create);
  if (!place) return place.error();
  Acquisition acquisition(std::move(**place), request, wait);
  return request.mode == Mode::exclusive ? acquisition.exclusive() : acquisition.seated();
}

}  // namespace dlock::file
