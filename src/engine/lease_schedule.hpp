// When to renew a lease and when to give it up: pure arithmetic over instants that are passed in.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/margins.hpp"

namespace dlock {

/// A renewal is due after a third of the ttl; after a failure at once, then each second (each tenth
/// of a short ttl) with jitter, until the end of the tree must begin.  A lease without an end is
/// only checked now and then: nothing reports that a directory above a lock file was replaced.
/// It is renewed sooner at first_attempt(), where HeldLock starts the renewer; by kWithoutNews; and
/// when the service has news: see Renewer::run().
class LeaseSchedule {
 public:
  static constexpr Millis kLook{60'000};
  /// Between two renewals, if the service cannot tell of a loss.
  static constexpr Millis kWithoutNews{1'000};
  /// A job that has ended by then needs no renewal.  Sooner if the grant was answered so late that
  /// the lease counts as lost soon, at `lost_at`.
  static Deadline first_attempt(Deadline granted_at, Millis ttl, Deadline lost_at) {
    const Deadline usual = after(granted_at, std::min(Millis{1'000}, ttl / 3));
    return std::min(usual, granted_at + (lost_at - granted_at) / 2);
  }

  /// `seed` spreads the retries of many clients that lost the same server.  `look`: the time
  /// between two renewals of a lease without an end.
  LeaseSchedule(Deadline valid_until, Millis ttl, Margins margins, std::uint64_t seed,
                Millis look = kLook);

  /// When renew() must be called next; kNever for a lease without an end, until it was renewed.
  Deadline next_attempt() const { return next_attempt_; }
  /// The deadline of an attempt that begins at `now`: early enough that another can follow.
  Deadline attempt_until(Deadline now) const;

  Deadline valid_until() const { return valid_until_; }
  /// From here on the lease counts as lost, and the end of the tree begins.
  Deadline give_up_at() const { return margins_.term_at(valid_until_); }

  /// A renewal that began at `asked` was answered at `answered`, and the lease is now good until
  /// `valid_until`.  False if the answer came too late to count: the lease is lost.
  [[nodiscard]] bool renewed(Deadline asked, Deadline answered, Deadline valid_until);
  /// A renewal failed, and nothing is known.  True for the first failure in a row.
  bool failed(Deadline now);
  bool failing() const { return failures_ > 0; }

 private:
  void plan(Deadline asked);

  Deadline valid_until_;
  Deadline next_attempt_ = kNever;
  Millis ttl_;
  Margins margins_;
  Millis look_;
  std::uint64_t random_;
  unsigned failures_ = 0;
};

}  // namespace dlock
