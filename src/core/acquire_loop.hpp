// The skeleton of acquire(), the same for all backends: attempt, tell the caller, wait, try again
// through outages, and leave nothing behind when it gives up.
#pragma once

#include <memory>
#include <string>

#include "core/backend.hpp"
#include "core/patience.hpp"

namespace dlock {

/// What a backend does in the steps of one acquire().  All of it runs in the caller's thread.  A
/// step may take until Patience::call_until() for each answer of the service; it fails with
/// Errc::cancelled when Wait::cancel says so.
class AcquireSteps {
 public:
  struct Attempt {
    std::unique_ptr<Lease> lease;  // if the lock was granted
    // Else: the holders and our place, as a text that changes when they do; "": no holder was seen.
    std::string seen;
  };

  AcquireSteps() = default;
  virtual ~AcquireSteps() = default;
  AcquireSteps(const AcquireSteps&) = delete;
  AcquireSteps& operator=(const AcquireSteps&) = delete;

  /// Asks for the lock, over a new connection if there is none.
  virtual Result<Attempt> attempt() = 0;

  /// The lock as the last attempt found it, for Wait::on_blocked; without holders if the lock was
  /// released meanwhile.
  virtual Result<LockInfo> describe() = 0;

  /// Waits until another attempt may succeed; what has happened since the last attempt is not
  /// missed.  False: `until` has passed before that.
  virtual Result<bool> wait(Deadline until) = 0;

  /// A step has failed with `why`, Errc::unreachable or Errc::lost.  Drops what is useless for the
  /// next attempt: a connection, a session that has ended, an id that a request in doubt may still
  /// use.
  virtual void recover(const Error& why) = 0;

  /// The acquire() ends without a grant.  Removes from the service whatever an attempt has left
  /// there.  An error says that the service has not confirmed it.
  virtual Result<void> leave() = 0;
};

/// Runs the steps until the lock is granted or the acquire() fails, as Backend::acquire() promises.
/// Errc::busy if the wait is over.  Errc::lost, with which a step can fail, is an outage like any
/// other.
Result<std::unique_ptr<Lease>> acquire_loop(AcquireSteps& steps, const Request& request,
                                            const Wait& wait, Patience& patience);

}  // namespace dlock
