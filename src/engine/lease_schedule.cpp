#include "engine/lease_schedule.hpp"

#include <algorithm>

namespace dlock {

LeaseSchedule::LeaseSchedule(Deadline valid_until, Millis ttl, Margins margins, std::uint64_t seed,
                             Millis look)
    : valid_until_(valid_until), ttl_(ttl), margins_(margins), look_(look), random_(seed | 1) {
  // The grant was requested a ttl before its end, or a little later: backends keep a margin.
  plan(valid_until == kNever ? kNever : valid_until - ttl);
}

void LeaseSchedule::plan(Deadline asked) {
  if (valid_until_ == kNever) {
    next_attempt_ = after(asked, look_);
    return;
  }
  // A server may have granted less than was requested (a clamped session timeout).
  next_attempt_ = std::min(after(asked, ttl_ / 3), asked + (valid_until_ - asked) / 2);
}

Deadline LeaseSchedule::attempt_until(Deadline now) const {
  if (valid_until_ == kNever) return after(now, Millis{1'000});
  const Deadline slice = after(now, std::max(ttl_ / 6, Millis{100}));
  return std::min(slice, give_up_at());
}

bool LeaseSchedule::renewed(Deadline asked, Deadline answered, Deadline valid_until) {
  if (answered >= give_up_at()) return false;
  valid_until_ = valid_until;
  failures_ = 0;
  plan(asked);
  return true;
}

bool LeaseSchedule::failed(Deadline now) {
  if (++failures_ == 1) {
    next_attempt_ = now;
    return true;
  }
  random_ ^= random_ << 13;  // xorshift64 (Marsaglia 2003)
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  const Millis pause = std::min(Millis{1'000}, ttl_ / 10);
  const auto jitter = static_cast<Millis::rep>(random_ % static_cast<std::uint64_t>(pause.count()));
  next_attempt_ = now + pause / 2 + Millis{jitter};
  return false;
}

}  // namespace dlock
