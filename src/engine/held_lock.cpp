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

}  // namespace

HeldLock::HeldLock(std::unique_ptr<Lease> lease, Spec spec, SharedPage& page)
    : spec_(std::move(spec)),
      fence_(lease->fence()),
      slot_(lease->slot()),
      page_(page),
      lease_(std::move(lease)) {
  page.set_lease_end(lease_->valid_until());
  page.fence = fence_.value_or(0);
  page.granted_at = granted_at_.time_since_epoch().count();
}

Deadline HeldLock::keeper_starts_at() const {
  return after(granted_at_, std::min(kKeeperStarts, spec_.ttl / 3));
}

void HeldLock::start_keeper() {
  keeper_ = std::make_unique<LeaseKeeper>(
      std::move(lease_), LeaseKeeper::Spec{spec_.key, spec_.ttl, spec_.margins}, page_);
}

std::optional<Error> HeldLock::look(Deadline now) {
  if (loss_) return loss_;
  if (keeper_) loss_ = keeper_->loss();
  loss_is_certain_ = loss_.has_value();
  if (!loss_ && now >= spec_.margins.term_at(page_.lease_end())) {
    const auto trouble = keeper_ ? keeper_->trouble() : std::nullopt;
    loss_ = Error{Errc::lost, trouble ? trouble->message : "it could not be renewed in time"};
  }
  if (!loss_ && !keeper_ && (now >= keeper_starts_at() || has_news())) start_keeper();
  return loss_;
}

Deadline HeldLock::next_deadline() const {
  if (loss_) return kNever;
  const Deadline margin = spec_.margins.term_at(page_.lease_end());
  return keeper_ ? margin : std::min(margin, keeper_starts_at());
}

int HeldLock::lost_fd() const {
  if (loss_) return -1;
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

Result<void> HeldLock::release(Cancel impatience) {
  // Also after a loss: the record of a lock that ends with its connection is to be removed, and one
  // that is kept by this machine is free only then.
  const bool after_loss = loss_ && (spec_.ends_on == Traits::EndsOn::disconnect ||
                                    spec_.ends_on == Traits::EndsOn::process_exit);
  const Deadline lease_end = page_.lease_end();
  const Deadline soon = after(Clock::now(), kSoon);
  const std::unique_ptr<Lease> lease = take_lease(after_loss ? soon : std::min(lease_end, soon));
  if (loss_is_certain_ && !after_loss) return {};
  const Deadline until = after_loss            ? soon
                         : lease_end == kNever ? after(Clock::now(), spec_.network_timeout)
                                               : lease_end;
  for (bool first = true; lease && Clock::now() < until; first = false) {
    const Cancel cancel = first ? Cancel() : impatience;
    const auto released = lease->release(answered_by(until), cancel);
    if (released) return {};
    if (released.error().code == Errc::lost) {
      // Not found after a try whose answer got lost: that try did it.
      return first && !loss_ ? released : Result<void>();
    }
    if (first && !loss_) {
      util::log(Level::warning,
                "cannot release " + in_quotes(spec_.key) + ": " + released.error().message);
    }
    if (!first && impatience.requested()) break;
    util::wait_readable(first ? -1 : impatience.fd(),
                        std::min(until, after(Clock::now(), kReleaseAgain)));
  }
  const Millis left = lease_end == kNever ? Millis{0} : remaining(lease_end);
  const std::string message =
      in_quotes(spec_.key) + " was not released; it ends by itself" +
      (left > Millis{0} ? " in " + util::format_duration(left) : std::string());
  if (!loss_) util::log(Level::warning, message);
  return Error{Errc::unreachable, message};
}

void HeldLock::release_at(Deadline until) {
  if (Clock::now() < until) {
    const Deadline end = page_.lease_end();
    lease_ = take_lease(end == kNever ? after(Clock::now(), kSoon) : end);
    keeper_.reset();
    if (!lease_) return;
    const auto told = lease_->end_command(until, answered_by(page_.lease_end()), Cancel());
    if (told && spec_.ends_on == Traits::EndsOn::ttl) return;
  }
  for (Deadline now = Clock::now(); now < until && !look(now); now = Clock::now()) {
    std::array<pollfd, 1> fds{{{lost_fd(), POLLIN, 0}}};
    util::poll(fds, std::min(until, next_deadline()));
  }
  (void)release(Cancel());
}

}  // namespace dlock
