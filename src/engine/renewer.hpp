// Keeps one lease alive, and says so when it cannot.
#pragma once

#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "core/backend.hpp"
#include "engine/event_log.hpp"
#include "engine/lease_schedule.hpp"
#include "engine/link.hpp"
#include "util/fd.hpp"

namespace dlock {

/// Has a lease from the grant on.  Between start() and stop() a thread renews it, so that a slow
/// server delays neither a signal to the command nor the news that it has ended: as LeaseSchedule
/// says, and whenever Lease::event_fd() is readable.  A renewal that hangs says nothing, so the
/// owner looks at the end of the lease himself.
///
/// The owner's, but for what its thread does.  In a shared_ptr: a thread that hangs is left behind
/// with it.
class Renewer : public std::enable_shared_from_this<Renewer> {
 public:
  struct Spec {
    std::string key;  // for messages
    Millis ttl;
    Margins margins;
    Millis look = LeaseSchedule::kLook;
    const EventLog* event_log = nullptr;
  };
  /// The end of the lease stands in `end` until unwatch(), which has to be called before `end`
  /// goes.
  Renewer(std::unique_ptr<Lease> lease, Spec spec, LeaseEnd& end);

  /// Renews for the first time at `first`, or when the service has news.  Why not, if the system
  /// has no thread or no descriptor for that: then it can be tried again.
  std::optional<Error> start(Deadline first);
  bool runs() const { return phase_ == Phase::runs; }
  /// Ends that, and returns lease().
  Lease* stop(Deadline deadline);
  /// Null while it runs; and if a renewal hung and did not heed its Cancel before the deadline of
  /// stop(): then the lease is left to expire, and what comes of that renewal counts for nothing.
  Lease* lease() const { return phase_ == Phase::rests ? lease_.get() : nullptr; }

  /// While it runs, readable once the lock is lost; before, when start() is not to wait any longer
  /// if has_news().
  int fd() const { return runs() ? lost_.get() : lease_->event_fd(); }
  bool has_news() const;
  /// Why it is lost; none while it is held.  Errc::lost: the service says so.  Errc::unreachable:
  /// it may have it as ours, but we must not go on.
  std::optional<Error> loss();
  /// Why the last renewal, or start(), failed; none if it succeeded.
  std::optional<Error> trouble();

  Deadline lease_end() const { return last_end_.value_or(end_.get()); }
  /// Nobody counts on the lease from here on: who looks at `end` finds kNever there.
  void unwatch();

 private:
  enum class Phase { rests, runs, left_behind };
  enum class Wake { stopped, news, due };
  Wake wait(Deadline due);
  void run(Deadline first);
  bool renew();  // false: lost
  void move_end();
  void say_failed(const Error& error, Deadline answered) const;
  void log_event(std::string_view event, const nlohmann::ordered_json& more) const;
  void set_loss(Error error);
  void set_trouble(std::optional<Error> error);

  const Spec spec_;
  Phase phase_ = Phase::rests;
  std::thread thread_;
  Fd stop_, done_, lost_;
  std::optional<Deadline> last_end_;

  // The thread's alone while it runs.
  const std::unique_ptr<Lease> lease_;
  LeaseSchedule schedule_;
  Deadline failing_since_ = kNever;

  std::mutex mutex_;  // of what both touch
  LeaseEnd& end_;
  bool is_watched_ = true;
  std::optional<Error> loss_;
  std::optional<Error> trouble_;
};

/// Why a lock is lost of which the last renewal that succeeded was asked for at `last_success`:
/// "no renewal succeeded for 5s (redis h:6379: no answer)".
std::string not_renewed_in_words(Deadline last_success, const std::optional<Error>& trouble);

}  // namespace dlock
