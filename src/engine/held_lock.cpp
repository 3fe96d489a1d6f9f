#include "engine/held_lock.hpp"

#include <algorithm>
#include <array>

#include "util/duration.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

using util::in_quotes;
using util::Level;

constexpr Millis kKeeperStarts{1'000};
constexpr Millis kReleaseAgain{500};
constexpr Millis kSoon{2'000};  // a keeper stops, and a service restarts
constexpr Millis kStops{200};   // a keeper that has nothing to do

}  // namespace

HeldLock::HeldLock(std::unique_ptr<Lease> lease, Spec spec, LeaseEnd& end)
    : spec_(std::move(spec)),
      owner_id_(lease->owner_id()),
      fence_(lease->fence()),
      slot_(lease->slot()),
      witness_(lease->witness_fds()),
      end_(end),
      lease_(std::move(lease)),
      keeper_starts_at_(after(granted_at_, std::min(kKeeperStarts, spec_.ttl / 3))) {
  end_.set(lease_->valid_until());
}

HeldLock::~HeldLock() {
  keeper_.reset();  // it moves the end
  end_.set(kNever);
}

// Where the system has no thread to give now, the lease runs on, and it is tried again.
void HeldLock::start_keeper(Deadline starts) {
  auto keeper = std::make_unique<LeaseKeeper>(
      std::move(lease_),
      LeaseKeeper::Spec{spec_.key, spec_.ttl, spec_.margins, spec_.look, starts, spec_.event_log},
      end_);
  const bool was_refused = refused_.has_value();
  refused_ = keeper->refused();
  if (!refused_) {
    keeper_ = std::move(keeper);
    return;
  }
  lease_ = keeper->stop(kNever);
  keeper_starts_at_ = after(Clock::now(), kKeeperStarts);
  if (was_refused) return;
  util::log(Level::warning, "cannot renew " + in_quotes(spec_.key) + ": " + refused_->message +
                                "; trying again each second");
}

std::optional<Error> HeldLock::keep() {
  if (!keeper_) start_keeper(keeper_starts_at_);
  if (keeper_) return keeper_->loss();
  return end_.get() == kNever ? std::nullopt : refused_;
}

std::optional<Error> HeldLock::look(Deadline now) {
  if (loss_) return loss_;
  if (!keeper_ && (now >= keeper_starts_at_ || (!refused_ && has_news()))) start_keeper(now);
  if (keeper_) loss_ = keeper_->loss();
  if (!loss_ && now >= spec_.margins.term_at(end_.get())) {
    const auto trouble = keeper_ ? keeper_->trouble() : refused_;
    loss_ = Error{Errc::lost, not_renewed_in_words(end_.get() - spec_.ttl, trouble)};
  } else if (loss_) {
    loss_was_told_ = true;
  }
  return loss_;
}

Deadline HeldLock::next_deadline() const {
  if (loss_) return kNever;
  const Deadline margin = spec_.margins.term_at(end_.get());
  return keeper_ ? margin : std::min(margin, keeper_starts_at_);
}

int HeldLock::lost_fd() const {
  if (loss_ || refused_) return -1;
  return keeper_ ? keeper_->lost_fd() : lease_->event_fd();
}

bool HeldLock::has_news() const {
  const int event = lease_->event_fd();
  return event >= 0 && util::wait_readable(event, Deadline{}) && lease_->has_news();
}

Deadline HeldLock::answered_by(Deadline latest) const {
  return std::min(latest, after(Clock::now(), spec_.network_timeout));
}

std::unique_ptr<Lease> HeldLock::take_lease(Deadline until) {
  return keeper_ ? keeper_->stop(until) : std::move(lease_);
}

// To give the lock up: nobody counts on it from here on, so whoever watches its end is not to act
// on it.  lease_ is ours again, or null if a renewal hangs until then.
void HeldLock::stop_keeping(Deadline until) {
  if (last_end_) return;
  last_end_ = end_.get();
  end_.set(kNever);
  lease_ = take_lease(std::max(until, after(Clock::now(), kStops)));
  end_.set(kNever);  // after a last renewal
}

// Of a lock that is given up.
Deadline HeldLock::gives_up_at() const {
  const Deadline end = last_end_.value_or(end_.get());
  return end == kNever ? after(Clock::now(), spec_.network_timeout) : end;
}

// After a loss that the service has told there may be something left that keeps others out.  Where
// it was not heard of any more, the job has been told enough.
Result<void> HeldLock::release(Cancel impatience, Deadline latest) {
  const Deadline soon = after(Clock::now(), kSoon);
  const Deadline until = std::min(latest, std::max(soon, gives_up_at()));
  const bool is_quiet = loss_ && !loss_was_told_;
  stop_keeping(std::min(until, soon));
  for (bool first = true; lease_ && Clock::now() < until; first = false) {
    const Cancel cancel = first ? Cancel() : impatience;
    const auto released = lease_->release(answered_by(until), cancel);
    if (released) return {};
    if (released.error().code == Errc::lost) {
      // Not found after a try whose answer got lost: that try did it.
      return first && !loss_ ? released : Result<void>();
    }
    if (first && !is_quiet) {
      util::log(Level::warning,
                "cannot release " + in_quotes(spec_.key) + ": " + released.error().message);
    }
    if (!first && impatience.requested()) break;
    util::wait_readable(first ? -1 : impatience.fd(),
                        std::min(until, after(Clock::now(), kReleaseAgain)));
  }
  const Millis left = last_end_ == kNever ? Millis{0} : remaining(*last_end_);
  const std::string message =
      in_quotes(spec_.key) + " was not released; it ends by itself" +
      (left > Millis{0} ? " in " + util::format_duration(left) : std::string());
  if (!is_quiet) util::log(Level::warning, message);
  return Error{Errc::unreachable, message};
}

// A service that does not answer is asked until the lease is over.
Result<void> HeldLock::complete(const Completion& completion, Cancel cancel) {
  const Deadline until = gives_up_at();
  stop_keeping(until);
  Error why{Errc::unreachable, "a renewal of the lock hangs"};
  for (bool first = true; lease_ && (first || Clock::now() < until); first = false) {
    auto done = lease_->complete(completion, answered_by(until), first ? Cancel() : cancel);
    if (done || done.error().code == Errc::cancelled) return done;
    why = done.error();
    if (why.code == Errc::lost) {
      loss_ = why;
      loss_was_told_ = true;
    }
    if (why.code != Errc::unreachable) return why;
    if (first) {
      util::log(Level::warning, "cannot remember yet that " + in_quotes(spec_.key) +
                                    " is done, trying for " +
                                    util::format_duration(remaining(until)) + ": " + why.message);
    }
    util::wait_readable(cancel.fd(), std::min(until, after(Clock::now(), kReleaseAgain)));
    if (cancel.requested()) return Error{Errc::cancelled, why.message};
  }
  return why;
}

Result<void> HeldLock::end_command(Deadline until, Cancel impatience) {
  lease_ = take_lease(std::min(end_.get(), after(Clock::now(), kSoon)));
  keeper_.reset();
  if (!lease_) return {};  // a renewal hangs
  auto told = lease_->end_command(until, answered_by(end_.get()), impatience);
  if (told && spec_.ends_on != Traits::EndsOn::ttl) {
    return Error{Errc::unsupported, "it does not expire by itself"};
  }
  return told;
}

}  // namespace dlock
