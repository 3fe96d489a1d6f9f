// Full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
#include "core/patience.hpp"

#include <algorithm>

#include "util/duration.hpp"
#include "util/jitter.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

// A server that restarts closes all connections at one instant.  So the first pause is long enough
// to spread the clients, and the longest one short enough that a waiter finds the new server soon.
constexpr Millis kFirstPause{250};
constexpr Millis kLongestPause{2'000};
// So much longer than the wait may a call take that has begun before its end: a server that is well
// answers in that time.
constexpr Millis kOverrun{1'000};
// With less time left there is no other try.  Many waiters may have the same deadline, and would
// all come back in the last moment before it.
constexpr Millis kTooShort{100};
// A service that fails again sooner is still in the same outage.
constexpr Millis kStable{10'000};
// Between two tries of what cannot wait long, at most.
constexpr Millis kBriefPause{500};

}  // namespace

Patience::Patience(const Wait& wait, Millis connect_timeout, std::string_view key)
    : wait_(wait),
      connect_timeout_(connect_timeout),
      key_(key),
      first_contact_until_(after(Clock::now(), connect_timeout)),
      tries_once_(wait.until <= Clock::now()),
      was_answered_(wait.reached) {}

void Patience::answered() { was_answered_ = true; }

void Patience::recovered() {
  if (failures_ == 0 || well_since_) return;
  well_since_ = Clock::now();
  if (announced_ != Announced::beginning) return;
  announced_ = Announced::end;
  const auto lasted = std::chrono::duration_cast<Millis>(*well_since_ - outage_began_);
  util::log(util::Level::note, "waiting for " + util::in_quotes(key_) +
                                   ": the backend answers again after " +
                                   util::format_duration(lasted));
}

Deadline Patience::call_until() const {
  if (tries_once_) return first_contact_until_;
  const Deadline limit =
      was_answered_ ? after(Clock::now(), connect_timeout_) : first_contact_until_;
  return std::min(limit, after(wait_.until, kOverrun));
}

Result<void> Patience::pause(const Error& why) {
  if (why.code != Errc::unreachable) return why;
  const Deadline now = Clock::now();
  if (well_since_ && now - *well_since_ >= kStable) {
    failures_ = 0;
    announced_ = Announced::nothing;
  }
  if (well_since_ || failures_ == 0) outage_began_ = now;
  well_since_.reset();
  ++failures_;
  const bool is_full = why.is_full && wait_.holds;
  const bool cut_short = remaining(first_contact_until_, now) < kTooShort;
  was_full_ = (why.is_full && !wait_.holds) || (was_full_ && cut_short);
  if (was_full_ && cut_short) was_answered_ = true;
  const Deadline limit = is_full         ? after(outage_began_, connect_timeout_)
                         : was_answered_ ? kNever
                                         : first_contact_until_;
  const Deadline end = std::min(wait_.until, limit);
  const Millis left = remaining(end, now);
  const bool last = left < kTooShort;
  if (!last || now < end || failures_ == 1) trouble_ = why;
  // A connection that is replaced at once was no outage.  Of one that comes and goes, each
  // beginning is no news.
  const bool is_news = announced_ == Announced::nothing ||
                       (announced_ == Announced::end && now - outage_began_ >= kStable);
  if (!last && was_answered_ && failures_ > 1 && is_news) {
    announced_ = Announced::beginning;
    const std::string how_long =
        end == kNever ? "until it answers" : "for " + util::format_duration(left) + " at most";
    util::log(util::Level::warning, "waiting for " + util::in_quotes(key_) + ": " + why.message +
                                        "; trying again " + how_long);
  }
  const Millis most = std::min(kFirstPause * (1U << std::min(failures_ - 1, 8U)), kLongestPause);
  const auto range = std::max(std::min(most, left / 2).count(), Millis::rep{1});
  const Millis pause = util::jitter(Millis{0}, Millis{range});
  if (util::wait_readable(wait_.cancel.fd(), last ? end : after(now, pause))) {
    return Error{Errc::cancelled, "stopped waiting for " + util::in_quotes(key_)};
  }
  if (last) return trouble_;
  return {};
}

bool pause_briefly(Deadline deadline, Cancel cancel) {
  const Deadline next = after(Clock::now(), util::jitter(kBriefPause));
  return next < deadline && !util::wait_readable(cancel.fd(), next);
}

}  // namespace dlock
