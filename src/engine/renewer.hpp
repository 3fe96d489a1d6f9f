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

/// Owns a lease from the grant on.  Between start() and stop() a thread renews it, as LeaseSchedule
/// says and when Lease::event_fd() is readable.  So a slow server delays neither a signal to the
/// command nor the report of its end.  A renewal that hangs reports nothing: the owner watches the
/// end of the lease, too.  Only the owner calls the functions.  It is in a shared_ptr: a thread
/// that hangs is left behind with it.
class Renewer : public std::enable_shared_from_this<Renewer> {
 public:
  struct Spec {
    std::string key;  // for messages
    Millis ttl;
    Margins margins;
    Millis look = LeaseSchedule::kLook;
    const EventLog* event_log = nullptr;
  };
  /// `end` has the end of the lease until unwatch(), which must come before `end` is destroyed.
  Renewer(std::unique_ptr<Lease> lease, Spec spec, LeaseEnd& end);

  /// Renews for the first time at `first`, or when the service has news.  Returns an error if the
  /// system has no thread or descriptor for that: the caller may try again.
  std::optional<Error> start(Deadline first);
  bool runs() const { return phase_ == Phase::runs; }
  /// Stops the renewals, and returns lease().
  Lease* stop(Deadline deadline);
  /// Null while it runs.  Null, too, if a renewal hung and ignored its Cancel until the deadline of
  /// stop(): the lease is left to expire, and the result of that renewal is ignored.
  Lease* lease() const { return phase_ == Phase::rests ? lease_.get() : nullptr; }

  /// While it runs, readable once the lock is lost.  Before, readable when has_news() may be true:
  /// then start() need not wait any longer.
  int fd() const { return runs() ? lost_.get() : lease_->event_fd(); }
  bool has_news() const;
  /// Why it is lost; none while it is held.  Errc::lost: the service says so.  Errc::unreachable:
  /// the service may have it as ours, but we must not go on.
  std::optional<Error> loss();
  /// Why the last renewal, or start(), failed; none if it succeeded.
  std::optional<Error> trouble();

  Deadline lease_end() const { return last_end_.value_or(end_.get()); }
  /// The lease is not relied on from here on: `end` becomes kNever.
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

  // Used only by the thread while it runs.
  const std::unique_ptr<Lease> lease_;
  LeaseSchedule schedule_;
  Deadline failing_since_ = kNever;

  std::mutex mutex_;  // for what both threads use
  LeaseEnd& end_;
  std::optional<Deadline> last_end_;  // once it is not watched any more
  std::optional<Error> loss_;
  std::optional<Error> trouble_;
};

/// Why a lock is lost whose last successful renewal was requested at `last_success`: "no renewal
/// succeeded for 5s (redis h:6379: no answer)".
std::string not_renewed_in_words(Deadline last_success, const std::optional<Error>& trouble);

}  // namespace dlock
