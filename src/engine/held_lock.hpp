// One lock that this run holds, from the grant to its release: keeps it, and gives it up in the
// end.
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
    bool borrowed = false;  // from a run above this one, which lends it
  };
  /// `end` is where the end of the lease stands while it is held; kNever after that.
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

  /// Has the lock kept in the background from now on, for a caller that does not check().  Why not,
  /// if the system has no thread or no descriptor for that.
  std::optional<Error> start_renewing();

  /// Starts the renewer when it is time, or when the service has news: a job that is done within a
  /// second pays for no thread and no subscription.  Why the lock is lost; none while it is ours.
  /// Errc::lost: the service says so.  Errc::unreachable: by the clock.
  std::optional<Error> check(Deadline now);
  bool is_lost() const { return loss_.has_value(); }  // said check()
  Deadline next_deadline() const;  // when check() is to be called again at the latest
  int lost_fd() const;             // or when this is readable; -1: there is none

  /// Releases the lock, trying again until the lease is over, or until `latest` if that is sooner.
  /// A message on `impatience` (its fd) ends the tries from the second on; the first is not to be
  /// cut short by the other half of two signals.  Errc::lost if somebody else took it while it
  /// should have been ours; Errc::unreachable if it is left to end by itself, which has been said
  /// then.
  Result<void> release(Cancel impatience, Deadline latest = kNever);

  /// Lease::find_mark(), before the lock is kept in the background.
  Result<std::optional<Mark>> find_mark(Backend& backend, const MarkName& name, Deadline deadline) {
    return renewer_->lease()->find_mark(backend, name, deadline);
  }

  /// As release(), and has it remembered that the job is done.  Errc::cancelled: not yet, although
  /// it was tried; it may be called again.  Errc::lost if it is not, since the lock was not ours
  /// any more; other errors say why it is not, or perhaps not.  After an error, the lock is to be
  /// released.
  Result<void> complete(const Completion& completion, Cancel cancel);

  /// The command has ended, and the lock is to be kept until `until` (--min-hold).  Ok: it expires
  /// then by itself, and there is nothing more to do.  An error: it is to be kept, and released.
  Result<void> end_command(Deadline until, Cancel impatience);

 private:
  void start_renewer(Deadline first);
  bool is_refused() const { return !renewer_->runs() && renewer_->trouble(); }
  Deadline answered_by(Deadline latest) const;
  Deadline gives_up_at() const;
  Lease* stop_renewing(Deadline until);

  const Spec spec_;
  const Deadline granted_at_ = Clock::now();
  const std::string owner_id_;
  const std::optional<std::uint64_t> fence_;
  const std::optional<unsigned> slot_;
  const std::vector<int> lock_fds_;
  const std::shared_ptr<Renewer> renewer_;
  Deadline renewer_starts_at_;  // tries to
  std::optional<Error> loss_;
};

}  // namespace dlock
