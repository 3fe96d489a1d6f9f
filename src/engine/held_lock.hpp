// One lock that this run holds, from the grant to its release.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/backend.hpp"
#include "engine/renewer.hpp"

namespace dlock {

class HeldLock {
 public:
  struct Spec {
    Renewer::Spec renewal;
    Millis network_timeout;
    Traits::EndsOn ends_on;
    bool borrowed = false;  // from a run above this one
  };
  /// `end` has the end of the lease while it is held, and kNever after that.
  HeldLock(std::unique_ptr<Lease> lease, Spec spec, LeaseEnd& end);
  ~HeldLock();

  const std::string& key() const { return spec_.renewal.key; }
  bool borrowed() const { return spec_.borrowed; }
  const std::string& owner_id() const { return owner_id_; }
  Deadline granted_at() const { return granted_at_; }
  Deadline lease_end() const { return renewer_->lease_end(); }
  Millis ttl() const { return spec_.renewal.ttl; }
  std::optional<std::uint64_t> fence() const { return fence_; }
  std::optional<unsigned> slot() const { return slot_; }
  std::span<const int> lock_fds() const { return lock_fds_; }

  /// Renews the lock in the background, for a caller that does not call check().  Returns an error
  /// if the system has no thread or no descriptor for that.
  std::optional<Error> start_renewing();

  /// Starts the renewer when it is time, or when the service has news: a job of less than a second
  /// pays for no thread or subscription.  Returns why the lock is lost; none while it is ours.
  /// Errc::lost: the service says so.  Errc::unreachable: by the clock.
  std::optional<Error> check(Deadline now);
  bool is_lost() const { return loss_.has_value(); }  // as check() found
  Deadline next_deadline() const;  // when check() must be called again at the latest
  int lost_fd() const;             // or when this is readable; -1: there is none

  /// Releases the lock.  Tries until the lease is over (if it has no end, for the network timeout),
  /// two seconds at least, or until `latest` if that is sooner.  A message on `impatience` (its fd)
  /// ends the tries from the second on, not the first: it may be the other half of two signals.
  /// Errc::lost if another client took the lock while it should have been ours.  Errc::unreachable
  /// if the lock is left to end by itself, which is logged.
  Result<void> release(Cancel impatience, Deadline latest = kNever);

  /// Lease::find_mark(), before the lock is kept in the background.
  Result<std::optional<Mark>> find_mark(Backend& backend, const MarkName& name, Deadline deadline) {
    return renewer_->lease()->find_mark(backend, name, deadline);
  }

  /// As release(), and records that the job is done.  Errc::cancelled: not yet, after a try; the
  /// caller may call it again.  Errc::lost: not recorded, since the lock was not ours any more.
  /// Others: not recorded, or in doubt.  After an error, the caller must release the lock.
  Result<void> complete(const Completion& completion, Cancel cancel);

  /// The command has ended, and the lock must be held until `until` (--min-hold).  Ok: the lock
  /// then expires by itself.  An error: the caller keeps the lock, and releases it.
  Result<void> end_command(Deadline until, Cancel impatience);

 private:
  void start_renewer(Deadline first);
  bool is_refused() const { return !renewer_->runs() && renewer_->trouble(); }
  Deadline answered_by(Deadline latest) const;
  Deadline counts_as_lost_at() const { return spec_.renewal.margins.term_at(lease_end()); }
  Deadline release_is_tried_until() const;
  Lease* stop_renewing(Deadline until);

  const Spec spec_;
  const Deadline granted_at_ = Clock::now();
  const std::string owner_id_;
  const std::optional<std::uint64_t> fence_;
  const std::optional<unsigned> slot_;
  const std::vector<int> lock_fds_;
  const std::shared_ptr<Renewer> renewer_;
  Deadline renewer_starts_at_;  // when the next start is tried
  std::optional<Error> loss_;
};

}  // namespace dlock
