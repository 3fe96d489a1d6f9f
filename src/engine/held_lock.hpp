// A lock that this run holds, from the grant to its release: keeps it, and gives it up in the end.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/backend.hpp"
#include "engine/lease_keeper.hpp"
#include "engine/link.hpp"

namespace dlock {

class HeldLock {
 public:
  struct Spec {
    std::string key;
    Millis ttl;
    Margins margins;
    Millis network_timeout;
    Traits::EndsOn ends_on;
  };
  HeldLock(std::unique_ptr<Lease> lease, Spec spec, SharedPage& page);

  Deadline granted_at() const { return granted_at_; }
  Millis ttl() const { return spec_.ttl; }
  std::optional<std::uint64_t> fence() const { return fence_; }
  std::optional<unsigned> slot() const { return slot_; }

  /// Starts the keeper when it is time, or when the service has news: a job that is done within a
  /// second pays for no thread and no subscription.  Why the lock is lost, by the keeper's word or
  /// by the clock; none while it is ours.
  std::optional<Error> look(Deadline now);
  Deadline next_deadline() const;  // when look() is to be called again at the latest
  int lost_fd() const;             // or when this is readable; -1: there is none

  /// Releases the lock, trying again until the lease is over.  A message on `impatience` (its fd)
  /// ends the tries from the second on; the first is not to be cut short by the other half of two
  /// signals.  Errc::lost if somebody else took it while it should have been ours;
  /// Errc::unreachable if it is left to end by itself, which has been said then.
  Result<void> release(Cancel impatience);

  /// The command has ended: keeps the lock until `until` (--min-hold) and releases it.  If the lock
  /// can be made to expire then by itself, returns at once.
  void release_at(Deadline until);

 private:
  void start_keeper();
  Deadline keeper_starts_at() const;
  Deadline answered_by(Deadline latest) const;
  bool has_news() const;
  std::unique_ptr<Lease> take_lease(Deadline until);

  const Spec spec_;
  const Deadline granted_at_ = Clock::now();
  std::optional<std::uint64_t> fence_;
  std::optional<unsigned> slot_;
  SharedPage& page_;
  std::unique_ptr<Lease> lease_;  // the keeper's once there is one
  std::unique_ptr<LeaseKeeper> keeper_;
  std::optional<Error> loss_;
  bool loss_is_certain_ = false;
};

}  // namespace dlock
