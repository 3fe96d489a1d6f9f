// Files of a key:
//   job          the lock file.  Exclusive: LOCK_EX.  Shared and slots: LOCK_SH.
//   job~gate     the lock that only the first waiter has.  Exclusive and slots: LOCK_EX until the
//                lock is granted.  Shared: LOCK_SH for a moment.
//   job~slot1..  slots: LOCK_EX on one of them.
//   job~w        a folder with the registrations of holders and waiters.  LOCK_EX for the moment in
//                which a shared or a slots lock is granted.
//
// Queue.   The first waiter has the gate and waits for the lock file or a slot; all others wait for
//          the gate.  So a release wakes one waiter, later requests do not get in front of it, and
//          a waiter for an exclusive lock keeps new readers out.  A reader gives the gate back
//          before it waits for the lock file, so readers do not keep each other out.
//
// Stopped. The first waiter may be stopped, or its container frozen, while the lock is free.  So
//          each waiter tries without the gate every 10 s (WaitIntervals::holders), and each request
//          before it gives up.  A reader does that only while there is no holder, or it would get
//          in front of a waiter for an exclusive lock; so readers run one after another then.  If
//          the helper of a stopped waiter is granted the lock (flock_wait.cpp), the waiter has it
//          until it goes on or is killed.
//
// Killed.  The kernel unlocks what the processes had locked.  Their registrations stay until a
//          process reads them: dlock list, show and force-release, waiters, and grants of shared
//          and slots locks.  The other files are never deleted.
//
// Modes.   The kernel keeps exclusive locks and the others apart.  Shared locks, and slots locks
//          with different numbers of slots, are kept apart by the registrations of the holders: a
//          request reads them, and registers as a holder, while it has the folder locked.
//
// Slots.   All holders agree on N, there are only N slots, and each is had with LOCK_EX: there are
//          never more than N holders.  Slots are tried with the folder locked, so that no free one
//          is missed.  flock(2) cannot wait for one of several files, so the first waiter tries
//          them again and again (WaitIntervals::slots), and at once when a registration is deleted.
//
// Fence.   Written with LOCK_EX on the lock file, or with LOCK_SH and the folder locked: never by
//          two processes at a time.
//
// Unlink.  A file that was locked may have been deleted or replaced meanwhile, or its directory, so
//          that others lock another file of that name.  So the path is compared after the lock, and
//          every 10 s while waiting.  A holder compares when it renews.
//
// Registrations.  An exclusive lock does not depend on them.  They are made before any lock and
//          removed after all, so that a process which is in /proc/locks and not registered is
//          another program.
//
// Cleaners. systemd-tmpfiles deletes what is old in /tmp, but not in a directory that somebody has
//          flocked.
#include "backends/file/acquire.hpp"

#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "backends/file/file_lease.hpp"
#include "backends/file/flock_wait.hpp"
#include "backends/file/inspect.hpp"
#include "backends/file/lock_file.hpp"
#include "backends/file/name.hpp"
#include "backends/file/registration.hpp"
#include "backends/file/registrations.hpp"
#include "backends/file/watch.hpp"
#include "core/acquire_loop.hpp"
#include "core/patience.hpp"
#include "util/exchange.hpp"
#include "util/host.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

// How often the directory may have been replaced during one attempt.
constexpr int kMostReplaced = 3;
// A directory that cannot be used at the first attempt is an error.  Later it is an outage, which
// is waited out.
constexpr Millis kConnectTimeout{0};

struct Slot {
  unsigned number = 0;
  LockFile file;
};

// Of a waiter in the kernel's queues.
struct KernelQueue {
  LockFile gate;
  std::optional<LockFile> lock_file;  // unless a slot is wanted
  FlockWait wait;
};

class Acquisition final : public AcquireSteps {
 public:
  Acquisition(std::shared_ptr<const LockDir>& dir, const Request& request, const Wait& wait,
              const WaitIntervals& intervals)
      : dir_(dir), request_(request), wait_(wait), intervals_(intervals) {}

  Result<Attempt> attempt() override;
  Result<LockInfo> describe() override { return blocked_by_; }
  Result<bool> wait(Deadline until) override;
  void recover(const Error& why) override;
  // The destructor unlocks, in the reverse order of the members.
  Result<void> leave() override { return {}; }

 private:
  bool is(Mode mode) const { return request_.mode == mode; }
  int lock_operation() const { return is(Mode::exclusive) ? LOCK_EX : LOCK_SH; }
  int gate_operation() const { return is(Mode::shared) ? LOCK_SH : LOCK_EX; }

  Result<void> open();
  Result<bool> try_lock(const std::string& name, std::initializer_list<int> operations,
                        Missing missing, std::optional<LockFile>& locked);
  Result<bool> take_gate();
  Result<bool> take_lock_file();
  Result<std::unique_ptr<Lease>> take();
  Result<std::optional<Slot>> take_slot();
  Record record(Deadline since) const;
  Result<std::unique_ptr<Lease>> grant(std::optional<Slot> slot);
  Result<void> find_holders();

  Result<void> begin_queueing();
  Result<bool> wait_in_queue(Deadline until);
  Result<bool> wait_for_slot(Deadline until);
  Error cancelled() const {
    return {Errc::cancelled, "stopped waiting for " + util::in_quotes(request_.key)};
  }

  std::shared_ptr<const LockDir>& dir_;
  const Request& request_;
  const Wait& wait_;
  const WaitIntervals& intervals_;
  const Deadline begun_ = Clock::now();

  std::shared_ptr<const Place> place_;          // null: to be opened
  std::unique_ptr<Registration> registration_;  // made before the locks, removed after them
  std::optional<LockFile> gate_;
  std::optional<LockFile> lock_file_;
  std::optional<KernelQueue> queue_;
  Watch watch_;                // of the registrations
  bool ignores_gate_ = false;  // the next attempt is also made without the gate

  LockInfo blocked_by_;
  std::uint64_t seen_fence_ = 0;  // the newest one when blocked_by_ was read
  Deadline next_wake_{};
};

// The directory may have been replaced since it was opened.
Result<void> Acquisition::open() {
  if (place_) return {};
  if (auto there = dir_->still_there(); !there) {
    if (there.error().code != Errc::lost) return there;
    auto again = dir_->open_again();
    if (!again) return again.error();
    dir_ = std::move(*again);
  }
  (void)::flock(dir_->fd(), LOCK_SH | LOCK_NB);  // for cleaners; it may fail
  auto place = place_of(dir_, request_.key, Missing::create);
  if (!place) return place.error();
  auto there = std::make_shared<const Place>(std::move(**place));
  auto registration = Registration::make(there);
  if (!registration) return registration.error();
  place_ = std::move(there);
  registration_ = std::move(*registration);
  return {};
}

void Acquisition::recover(const Error&) {
  queue_.reset();
  lock_file_.reset();
  gate_.reset();
  registration_.reset();
  watch_ = Watch();
  place_.reset();
  next_wake_ = {};
  blocked_by_ = {};
}

// Locks the file of this name by these operations, if that is possible now.  Between two of them,
// the kernel may grant the lock to another process.  True without a lock if the file is missing,
// and is to be left so.
Result<bool> Acquisition::try_lock(const std::string& name, std::initializer_list<int> operations,
                                   Missing missing, std::optional<LockFile>& locked) {
  for (;;) {
    auto file = open_lock_file(*place_, name, missing);
    if (!file) return file.error();
    if (!*file) return true;
    for (const int operation : operations) {
      auto got = try_flock(**file, *place_, operation);
      if (!got || !*got) return got;
    }
    auto in_place = is_in_place(**file, *place_);
    if (!in_place) return in_place;
    if (!*in_place) continue;
    locked = std::move(**file);
    return true;
  }
}

// Only waiters create the gate: without one, there is nothing to wait for.
Result<bool> Acquisition::take_gate() {
  if (gate_) return true;
  auto got = try_lock(gate_name(place_->leaf), {gate_operation()}, Missing::leave, gate_);
  if (got && *got) queue_.reset();
  return got;
}

Result<bool> Acquisition::take_lock_file() {
  if (lock_file_) return true;
  // While there is a queue, the registration has the pid of the process that waits in it.
  if (!queue_) registration_->locks_by(getpid());
  const auto try_it = [&](std::initializer_list<int> operations) {
    return try_lock(place_->leaf, operations, Missing::create, lock_file_);
  };
  // One that gives up must not have the gate even for a moment, which would keep a reader out.
  if (ignores_gate_ && !is(Mode::shared)) return try_it({lock_operation()});
  auto gate = take_gate();
  if (!gate) return gate;
  if (*gate) return try_it({lock_operation()});
  // Without the gate, a reader takes the lock file only if there is no holder.
  return ignores_gate_ ? try_it({LOCK_EX, LOCK_SH}) : false;
}

// Null: the lock is not free.
Result<std::unique_ptr<Lease>> Acquisition::take() {
  if (auto ok = open(); !ok) return ok.error();
  const auto got = take_lock_file();
  if (!got) return got.error();
  if (!got.value()) return nullptr;
  if (is(Mode::exclusive)) return grant(std::nullopt);
  if (auto ok = registration_->check(); !ok) return ok.error();
  const auto locked = lock_registrations(*place_, request_.owner.pid, wait_.until, wait_.cancel);
  if (!locked) return locked.error();
  if (auto ok = check_claim(*place_, request_.key, request_.claim()); !ok) return ok.error();
  if (!is(Mode::slots)) return grant(std::nullopt);
  auto slot = take_slot();
  if (!slot) return slot.error();
  if (*slot) return grant(std::move(*slot));
  lock_file_.reset();
  return nullptr;
}

// The lowest one that is free.
Result<std::optional<Slot>> Acquisition::take_slot() {
  for (unsigned number = 1; number <= request_.slots; ++number) {
    std::optional<LockFile> file;
    const auto got = try_lock(slot_name(place_->leaf, number), {LOCK_EX}, Missing::create, file);
    if (!got) return got.error();
    if (got.value()) return std::optional(Slot{number, std::move(*file)});
  }
  return std::optional<Slot>();
}

Record Acquisition::record(Deadline since) const {
  return {.owner = request_.owner,
          .mode = request_.mode,
          .slots = request_.slots,
          .since_ns = since.time_since_epoch().count(),
          .acquired_at = {}};
}

Result<std::unique_ptr<Lease>> Acquisition::grant(std::optional<Slot> slot) {
  auto fence = write_fence(*lock_file_, *place_, request_.claim());
  if (!fence) return fence.error();
  Record granted = record(Clock::now());
  granted.acquired_at = util::utc_now();
  granted.fence = *fence;
  if (slot) granted.slot = slot->number;
  registration_->mark_holding(granted, lock_file_->locked_by);
  if (!is(Mode::exclusive)) {
    if (auto ok = registration_->check(); !ok) return ok.error();
  }
  std::vector<LockFile> locks;
  locks.push_back(std::move(*lock_file_));
  lock_file_.reset();
  if (slot) locks.push_back(std::move(slot->file));
  watch_.clear();
  return make_lease({.place = place_,
                     .key = request_.key,
                     .owner = request_.owner,
                     .claim = request_.claim(),
                     .fence = *fence,
                     .slot = granted.slot,
                     .locks = std::move(locks),
                     .registration = std::move(registration_),
                     .watch = std::move(watch_)});
}

// Errc::conflict if they cannot be mixed with this request.  If the lock file has no fence, later
// holders are not noticed.
Result<void> Acquisition::find_holders() {
  if (Clock::now() < next_wake_) return {};
  const std::uint64_t fence = newest_fence(*place_);
  const bool known = !blocked_by_.holders.empty() && (wait_.once || fence == seen_fence_);
  if (!known) {
    auto seen = who_is_in_the_way(*place_, request_.key);
    if (!seen) return seen.error();
    const Claim held{seen->mode, seen->slots};
    for (const LockInfo::Holder& holder : seen->holders) {
      if (holder.foreign || modes_mix(request_.claim(), held)) continue;
      return mode_conflict(request_.key, request_.claim(), held);
    }
    blocked_by_ = std::move(*seen);
    seen_fence_ = fence;
  }
  next_wake_ = after(Clock::now(), blocked_by_.holders.empty() ? intervals_.until_holder_seen
                                                               : intervals_.holders);
  return {};
}

Result<AcquireSteps::Attempt> Acquisition::attempt() {
  // A request that gives up now must not miss a free lock.
  ignores_gate_ = ignores_gate_ || wait_.until <= Clock::now();
  auto lease = take();
  for (int i = 0; i < kMostReplaced && !lease && lease.error().code == Errc::lost; ++i) {
    recover(lease.error());
    lease = take();
  }
  ignores_gate_ = false;
  if (!lease) return lease.error();
  if (*lease) return Attempt{std::move(*lease), {}};
  // The number of waiters is to be with this one.
  if (wait_.until > Clock::now()) registration_->mark_waiting(record(begun_));
  if (auto ok = find_holders(); !ok) return ok.error();
  return Attempt{nullptr, blocked_by_.holders.empty() ? "" : std::to_string(seen_fence_)};
}

// Another attempt may succeed when the queue has been waited for, and also without the queue, when
// some time has passed or the wait is over.
Result<bool> Acquisition::wait(Deadline until) {
  until = std::min(until, next_wake_);
  return is(Mode::slots) && gate_ ? wait_for_slot(until) : wait_in_queue(until);
}

// A waiter for a slot waits for the gate only.
Result<void> Acquisition::begin_queueing() {
  queue_.emplace();
  if (gate_) {
    queue_->gate = std::move(*gate_);
    gate_.reset();
  } else {
    auto gate = open_lock_file(*place_, gate_name(place_->leaf));
    if (!gate) return gate.error();
    queue_->gate = std::move(*gate);
  }
  std::vector<FlockStep> steps{{queue_->gate.fd.get(), gate_operation()}};
  if (!is(Mode::slots)) {
    auto file = open_lock_file(*place_, place_->leaf);
    if (!file) return file.error();
    queue_->lock_file = std::move(*file);
    if (is(Mode::shared)) steps.push_back({queue_->gate.fd.get(), LOCK_UN});
    steps.push_back({queue_->lock_file->fd.get(), lock_operation()});
  }
  auto started = queue_->wait.start(place_->shown, steps, request_.owner.pid, registration_->fd());
  if (started) registration_->locks_by(queue_->wait.pid());
  return started;
}

Result<bool> Acquisition::wait_in_queue(Deadline until) {
  if (!queue_) {
    if (auto ok = begin_queueing(); !ok) return ok.error();
  }
  const Deadline asked = Clock::now();
  const auto end = queue_->wait.wait(until, wait_.cancel);
  const auto log_end = [&](std::string_view how) {
    if (!util::exchanges_shown()) return;
    util::log_exchange("lock file " + place_->shown, "wait", how, asked);
  };
  if (!end) return end.error();
  if (end.value() == FlockWait::End::cancelled) {
    log_end(cancelled().message);
    return cancelled();
  }
  auto in_place = is_in_place(queue_->gate, *place_);
  if (in_place && *in_place && queue_->lock_file) {
    in_place = is_in_place(*queue_->lock_file, *place_);
  }
  if (!in_place) return in_place;
  const bool granted = end.value() == FlockWait::End::granted;
  log_end(!*in_place ? "the file was replaced" : granted ? "granted" : "held");
  ignores_gate_ = !granted;
  if (!granted && *in_place) return true;
  if (*in_place) {
    if (!is(Mode::shared)) gate_ = std::move(queue_->gate);
    lock_file_ = std::move(queue_->lock_file);
    if (lock_file_) lock_file_->locked_by = queue_->wait.pid();
  }
  queue_.reset();
  return true;
}

Result<bool> Acquisition::wait_for_slot(Deadline until) {
  auto in_place = is_in_place(*gate_, *place_);
  if (!in_place) return in_place;
  if (!*in_place) {
    gate_.reset();
    return true;
  }
  // A registration may have been deleted before the watch.
  if (watch_.fd() < 0 && watch_.add(registration_->folder(), Watch::For::deleted_in)) return true;
  std::array<pollfd, 2> fds{pollfd{wait_.cancel.fd(), POLLIN, 0}, pollfd{watch_.fd(), POLLIN, 0}};
  util::poll(fds, std::min(until, after(Clock::now(), intervals_.slots)));
  if (fds[0].revents != 0) return cancelled();
  watch_.drain();
  return true;
}

}  // namespace

Result<std::unique_ptr<Lease>> acquire(std::shared_ptr<const LockDir>& dir, const Request& request,
                                       const Wait& wait, const WaitIntervals& intervals) {
  Patience patience(wait, kConnectTimeout, request.key);
  Acquisition acquisition(dir, request, wait, intervals);
  return acquire_loop(acquisition, request, wait, patience);
}

}  // namespace dlock::file
