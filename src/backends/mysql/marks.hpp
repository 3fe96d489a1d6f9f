// The marks of sessions, as texts for the server.  A mark is the name of a user-level lock
// (GET_LOCK), which a session has for as long as it is there.  Those that wait for it wake up when
// the session ends or releases it.
#pragma once

#include <string>
#include <string_view>

#include "util/clock.hpp"

namespace dlock::mysql {

/// What the marks of holders and waiters begin with; the id of the owner follows.
inline constexpr std::string_view kHolderMark = "dlock.h.";
inline constexpr std::string_view kWaiterMark = "dlock.w.";

/// Of the session of a holder, and of a waiter:
std::string holder_mark(std::string_view owner);
std::string waiter_mark(std::string_view owner);
/// Of any session of an acquire(), for its next session to find and end it:
std::string session_mark(std::string_view owner);
/// Of the session that has the row of mysql-row locked:
std::string row_mark(std::string_view owner);

/// On a cluster (Galera, or a replication group with several primaries) a session can see only the
/// marks of its own server, and Percona's refuses GET_LOCK.  There nobody has a mark, every mark is
/// free for everybody, and whether the session of a row is there is told by a condition (see
/// Pulse).
class Marks {
 public:
  /// Those of a server.
  Marks() = default;
  /// Of a cluster.  `is_over`: an SQL condition that is true of the rows of the table of locks
  /// whose sessions have ended.
  static Marks of_cluster(std::string is_over);

  bool on_cluster() const { return !is_over_.empty(); }

  /// In a statement about the table of locks: true of a row whose lease is over.
  std::string is_expired() const;
  /// Likewise: microseconds until then; NULL: never.
  std::string time_left() const;
  /// Likewise: the session that has the mark of the row; NULL: it has ended.
  std::string of_row(std::string_view prefix) const;
  /// True if that is the session that says this.
  std::string is_own(std::string_view prefix) const;

  /// The session that has the mark; NULL: none.
  std::string session(const std::string& mark) const;
  /// True if this session has the mark, which it takes if nobody has it, or as soon as nobody has
  /// it.  MySQL rounds the fraction of a second of `wait`.
  std::string have(const std::string& mark, Millis wait = Millis{0}) const;
  /// Gives it up, which wakes those that wait for it.
  std::string release(const std::string& mark) const;

  // These are whole statements; those that end with "; " go in front of another one.

  /// An answer: true if this session has the mark now.
  std::string take(const std::string& mark) const;
  /// Waits until no session has the mark, but not longer than `wait`, in whole seconds.
  std::string wait_for(const std::string& mark, Millis wait) const;
  /// Waits until the session of this owner has ended, but not longer than `wait`, in whole seconds,
  /// and takes its mark.  An answer: 1 if so.  While this session lives, no text of that owner that
  /// comes late takes the lock or joins the queue.
  std::string take_over(std::string_view owner, Millis wait) const;

 private:
  std::string get(const std::string& mark, const std::string& seconds) const;
  std::string get(const std::string& mark, Millis wait) const;

  std::string is_over_;
};

}  // namespace dlock::mysql
