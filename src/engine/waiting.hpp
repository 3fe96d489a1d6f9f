// The messages of a wait for a lock: one line that is kept current on a terminal, a few lines
// elsewhere.  They use no clock and no file: the launcher asks, and prints.
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

/// The holder of a lock, in the message to the launcher: of fixed size, texts end with a 0.
struct Blocked {
  std::uint32_t key = 0;           // which of RunSpec::keys
  std::int64_t held_ms = -1;       // -1: not known, as below
  std::int32_t place = -1;         // ours in the queue; 1: next
  std::int32_t waiting = -1;       // the number of waiters, with us
  std::array<char, 512> holder{};  // app on web-3.example.net, pid 4121 (deploy.sh)
  std::array<char, 160> brief{};   // web-3 pid 4121
  std::array<char, 96> command{};  // deploy.sh
  std::array<char, 1'025> label{};

  /// Made from the argument of Wait::on_blocked.
  static Blocked by(std::size_t key, const LockInfo& info);
  std::optional<Millis> held() const;
  bool same_holder(const Blocked& other) const;
};

class WaitReport {
 public:
  /// `at_most`: --wait.
  WaitReport(std::span<const std::string> keys, Deadline started, std::optional<Millis> at_most)
      : keys_(keys), started_(started), at_most_(at_most) {}

  /// The lock or the holder is another one, or more is known about the holder.
  void blocked(const Blocked& by, Deadline now);
  void over() { blocked_.reset(); }
  bool is_blocked() const { return blocked_.has_value(); }

  /// For a terminal: at most `columns` wide, if possible.  Host and pid are kept before the place
  /// in the queue, and that before the command.  Of the key, which the user typed, as much as fits.
  std::string line(Deadline now, std::size_t columns) const;
  /// The holder's label, once for each holder; else "".
  std::string take_label();

  /// Elsewhere: the lines to print now, and when to ask again.
  std::vector<std::string> take_lines(Deadline now);
  Deadline next() const { return next_; }
  /// The message that ends those of take_lines(); "" if there were none.
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
