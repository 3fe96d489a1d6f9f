#include "engine/held_lock.hpp"

#include <algorithm>

#include "util/duration.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

using util::in_quotes;
using util::Level;

constexpr Millis kStartsAgain{1'000};
constexpr Millis kReleaseAgain{500};
constexpr Millis kSoon{2'000};  // in which a renewer stops and a service restarts
constexpr Millis kStops{200};   // for a renewer that has nothing to do

}  // namespace

HeldLock::HeldLock(std::unique_ptr<Lease> lease, Spec spec, LeaseEnd& end)
    : spec_(std::move(spec)),
      owner_id_(lease->owner_id()),
      fence_(lease->fence()),
      slot_(lease->slot()),
      lock_fds_(lease->lock_fds()),
      renewer_(std::make_shared<Renewer>(std::move(lease), spec_.renewal, end)),
      renewer_starts_at_(LeaseSchedule::first_attempt(granted_at_, ttl(), counts_as_lost_at())) {}

HeldLock::~HeldLock() {
  renewer_->stop(kNever);
  renewer_->unwatch();
}

// If the system has no thread left, the lease runs on, and the start is tried again.
void HeldLock::start_renewer(Deadline first) {
  const bool was_refused = is_refused();
  const auto why = renewer_->start(first);
  if (!why) return;
  renewer_starts_at_ = after(Clock::now(), kStartsAgain);
  if (was_refused) return;
  util::log(Level::warning, "cannot renew " + in_quotes(key()) + ": " + why->message +
                                "; trying again each second");
}

std::optional<Error> HeldLock::start_renewing() {
  if (!renewer_->runs()) start_renewer(renewer_starts_at_);
  if (renewer_->runs()) return renewer_->loss();
  return lease_end() == kNever ? std::nullopt : renewer_->trouble();
}

std::optional<Error> HeldLock::check(Deadline now) {
  if (loss_) return loss_;
  if (!renewer_->runs() && (now >= renewer_starts_at_ || (!is_refused() && renewer_->has_news()))) {
    start_renewer(now);
  }
  loss_ = renewer_->loss();
  if (!loss_ && now >= counts_as_lost_at()) {
    loss_ =
        Error{Errc::unreachable, not_renewed_in_words(lease_end() - ttl(), renewer_->trouble())};
  }
  return loss_;
}

Deadline HeldLock::next_deadline() const {
  if (loss_) return kNever;
  const Deadline lost_at = counts_as_lost_at();
  return renewer_->runs() ? lost_at : std::min(lost_at, renewer_starts_at_);
}

int HeldLock::lost_fd() const { return loss_ || is_refused() ? -1 : renewer_->fd(); }

Deadline HeldLock::answered_by(Deadline latest) const {
  return std::min(latest, after(Clock::now(), spec_.network_timeout));
}

// Called to give the lock up.  Null if a renewal hangs until then.
Lease* HeldLock::stop_renewing(Deadline until) {
  renewer_->unwatch();
  return renewer_->stop(std::max(until, after(Clock::now(), kStops)));
}

Deadline HeldLock::release_is_tried_until() const {
  const Deadline end = lease_end();
  return end == kNever ? after(Clock::now(), spec_.network_timeout) : end;
}

// After a loss that the service reported, something may be left there that excludes others.  If the
// service did not answer any more, enough has been logged, and failures are not.
Result<void> HeldLock::release(Cancel impatience, Deadline latest) {
  const Deadline soon = after(Clock::now(), kSoon);
  const Deadline until = std::min(latest, std::max(soon, release_is_tried_until()));
  const bool is_quiet = loss_ && loss_->code == Errc::unreachable;
  Lease* const lease = stop_renewing(std::min(until, soon));
  for (bool first = true; lease != nullptr && Clock::now() < until; first = false) {
    const Cancel cancel = first ? Cancel() : impatience;
    const auto released = lease->release(answered_by(until), cancel);
    if (released) return {};
    if (released.error().code == Errc::lost) {
      // An earlier try has released the lock although its answer was lost.
      return first && !loss_ ? released : Result<void>();
    }
    if (first && !is_quiet) {
      util::log(Level::warning,
                "cannot release " + in_quotes(key()) + ": " + released.error().message);
    }
    if (!first && impatience.requested()) break;
    util::wait_readable(first ? -1 : impatience.fd(),
                        std::min(until, after(Clock::now(), kReleaseAgain)));
  }
  const Millis left = lease_end() == kNever ? Millis{0} : remaining(lease_end());
  const std::string message =
      in_quotes(key()) + " was not released; it ends by itself" +
      (left > Millis{0} ? " in " + util::format_duration(left) : std::string());
  if (!is_quiet) util::log(Level::warning, message);
  return Error{Errc::unreachable, message};
}

// Asks a service that does not answer again, until the lease is over.
Result<void> HeldLock::complete(const Completion& completion, Cancel cancel) {
  const Deadline until = release_is_tried_until();
  Lease* const lease = stop_renewing(until);
  Error why{Errc::unreachable, "a renewal of the lock hangs"};
  for (bool first = true; lease != nullptr && (first || Clock::now() < until); first = false) {
    auto done = lease->complete(completion, answered_by(until), first ? Cancel() : cancel);
    if (done || done.error().code == Errc::cancelled) return done;
    why = done.error();
    if (why.code == Errc::lost) loss_ = why;
    if (why.code != Errc::unreachable) return why;
    if (first) {
      util::log(Level::warning, "cannot remember yet that " + in_quotes(key()) +
                                    " is done, trying for " +
                                    util::format_duration(remaining(until)) + ": " + why.message);
    }
    util::wait_readable(cancel.fd(), std::min(until, after(Clock::now(), kReleaseAgain)));
    if (cancel.requested()) return Error{Errc::cancelled, why.message};
  }
  return why;
}

Result<void> HeldLock::end_command(Deadline until, Cancel impatience) {
  Lease* const lease = renewer_->stop(std::min(lease_end(), after(Clock::now(), kSoon)));
  if (lease == nullptr) return {};  // a renewal hangs
  auto told = lease->end_command(until, answered_by(lease_end()), impatience);
  if (told && spec_.ends_on != Traits::EndsOn::ttl) {
    return Error{Errc::unsupported, "it does not expire by itself"};
  }
  return told;
}

}  // namespace dlock
