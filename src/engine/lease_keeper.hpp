// Keeps one lease alive, and says so when it cannot.
#pragma once

#include <memory>
#include <optional>

#include "core/backend.hpp"
#include "engine/event_log.hpp"
#include "engine/link.hpp"
#include "engine/margins.hpp"

namespace dlock {

/// Renews in a thread of its own, so that a slow server delays neither a signal to the command nor
/// the news that it has ended.  Renews as LeaseSchedule says and whenever Lease::event_fd() is
/// readable.  Says nothing of a lease that silently runs out: the owner watches its end, so
/// that a renewal that hangs cannot keep him from ending the command.
class LeaseKeeper {
 public:
  struct Spec {
    std::string key;  // for messages
    Millis ttl;
    Margins margins;
    Millis look;        // LeaseSchedule
    Deadline starts{};  // sleeps until then, unless the service has news
    const EventLog* event_log = nullptr;
  };
  /// `end` is moved by each success, until stop() has returned.
  LeaseKeeper(std::unique_ptr<Lease> lease, Spec spec, LeaseEnd& end);
  ~LeaseKeeper();  // stops, and abandons the lease

  /// Why it does nothing, if the system had no thread or no descriptor to give: stop() hands the
  /// lease back.
  const std::optional<Error>& refused() const { return refused_; }

  int lost_fd() const;  // readable once the lock is lost
  /// Why; none while it is held.  Errc::lost: the service says so.  Errc::unreachable: it may have
  /// it as ours, but we must not go on.
  std::optional<Error> loss();
  std::optional<Error> trouble();  // why the last renewal failed; none if it succeeded

  /// Ends the renewals and hands the lease back, to be released by the caller.  Null if a renewal
  /// hangs and does not heed its Cancel by `deadline`: then the lock is left to expire, and what
  /// comes of that renewal counts for nothing.
  std::unique_ptr<Lease> stop(Deadline deadline);

 private:
  struct State;
  std::optional<Error> refused_;
  bool runs_ = false;  // the thread, until it is joined or left behind
  bool left_behind_ = false;
  std::shared_ptr<State> state_;  // shared with a thread that may have to be left behind
};

/// Why a lock is lost of which the last renewal that succeeded was asked for at `last_success`:
/// "no renewal succeeded for 5s (redis h:6379: no answer)".
std::string not_renewed_in_words(Deadline last_success, const std::optional<Error>& trouble);

}  // namespace dlock
