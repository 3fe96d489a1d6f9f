// What dlock says while it waits for a lock: one line that is kept current on a terminal, a few
// lines elsewhere. No clock, no file: the launcher asks, and prints.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.hpp"
#include "util/clock.hpp"

namespace dlock {

/// Who is in the way, as the process that waits tells it to the one that speaks: of fixed size,
/// texts end with a 0.
struct Blocked {
  std::uint32_t key = 0;           // which of RunSpec::keys
  std::int64_t held_ms = -1;       // -1: not known, as below
  std::int32_t place = -1;         // ours in the queue; 1: next
  std::int32_t waiting = -1;       // how many wait, with us
  std::array<char, 512> holder{};  // app on web-3.example.net, pid 4121 (deploy.sh)
  std::array<char, 160> brief{};   // web-3 pid 4121
  std::array<char, 96> command{};  // deploy.sh
  std::array<char, 1'025> label{};

  /// Of what Wait::on_blocked is told.
  static Blocked by(std::size_t key, const LockInfo& info);
  std::optional<Millis> held() const;
  bool same_holder(const Blocked& other) const;
};

class WaitReport {
 public:
  /// `at_most`: of --wait.
  WaitReport(std::span<const std::string> keys, Deadline started, std::optional<Millis> at_most)
      : keys_(keys), started_(started), at_most_(at_most) {}

  /// Another lock or another holder than before, or more is known of it.
  void blocked(const Blocked& by, Deadline now);
  /// Nothing is waited for any more.
  void over() { blocked_.reset(); }
  bool is_blocked() const { return blocked_.has_value(); }

  /// For a terminal: at most `columns` wide, if that can be had.  Host and pid come before the
  /// number in the queue, and that before the command; of the key, which the user has typed, there
  /// is as much as fits.
  std::string line(Deadline now, std::size_t columns) const;
  /// The holder's label, once for each holder; else "".
  std::string take_label();

  /// Elsewhere: what is to be said now, and when to ask again.
  std::vector<std::string> take_lines(Deadline now);
  Deadline next() const { return next_; }
  /// What ends what take_lines() has begun; "" if that has said nothing.
  std::string acquired(Deadline now) const;

 private:
  std::string in_the_queue() const;
  std::optional<Millis> held(Deadline now) const;

  std::span<const std::string> keys_;
  Deadline started_;
  std::optional<Millis> at_most_;
  std::optional<Blocked> blocked_;
  Deadline heard_at_ = kNever;
  std::optional<Blocked> said_;
  std::optional<Blocked> labelled_;
  Deadline next_ = kNever;
};

}  // namespace dlock
