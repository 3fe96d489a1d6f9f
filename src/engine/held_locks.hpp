// All locks of a run: each is kept by itself, and they are given up together.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/held_lock.hpp"
#include "util/fd.hpp"
#include "util/poll.hpp"

namespace dlock {

class HeldLocks {
 public:
  struct Loss {
    std::string key;
    Error error;
  };

  void add(std::unique_ptr<HeldLock> lock) { locks_.push_back(std::move(lock)); }
  /// In the order in which they were granted.
  const std::vector<std::unique_ptr<HeldLock>>& all() const { return locks_; }
  bool empty() const { return locks_.empty(); }
  /// Null: this key is not held.
  const HeldLock* find(const std::string& key) const;

  /// When the last one was granted: since then all are held.
  Deadline granted_at() const { return locks_.back()->granted_at(); }

  /// Sends copies of all Lease::lock_fds().  False, with errno set, if that is refused.
  bool send_lock_fds(SupervisorEnd& link) const;

  /// Calls HeldLock::check() of each.  Returns what was lost since the last call.
  std::vector<Loss> check(Deadline now);
  std::vector<std::string> lost_keys() const;  // as check() found
  Deadline next_deadline() const;              // when check() must be called again at the latest
  /// Or when one of these is readable.
  void add_lost_fds(std::vector<pollfd>& fds) const;

  /// Calls HeldLock::release() of all at once, and forgets them.  Returns the failures.
  std::vector<Loss> release(Cancel impatience, Deadline latest = kNever);

  /// Releases one of them, which must be held, and forgets it.
  void release_one(const std::string& key, Deadline latest);

  /// Calls HeldLock::complete() of the only one, and forgets it if that succeeds.
  Result<void> complete(const Completion& completion, Cancel cancel);

  /// The command has ended, and all locks must be held until `until` (--min-hold).  Forgets those
  /// that then expire by themselves, and those that were lost, which it returns.  A message on
  /// `impatience` ends the wait for answers: the locks are then kept.
  std::vector<Loss> expire_at(Deadline until, Cancel impatience);
  /// Keeps those that are left until `until`, and releases them.
  void release_at(Deadline until);

 private:
  template <class Action>
  std::vector<std::optional<Error>> at_once(Action action);

  std::vector<std::unique_ptr<HeldLock>> locks_;
};

}  // namespace dlock
