// Getting all locks of a run, or none.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/held_locks.hpp"
#include "engine/run_context.hpp"

namespace dlock {

/// Used by one thread, whose messages about who is in the way go to the launcher.
class Acquisition {
 public:
  /// Both must outlive it.  `signals`: of this process itself; readable: one has come.
  Acquisition(const RunContext& context, SupervisorEnd& link, int signals = -1);

  /// Waits, by RunSpec::wait for all together, until every key is ours.  Errc::cancelled when the
  /// link or `signals` is readable.  On failure nothing is held, nor if done().
  Result<HeldLocks> run();

  /// With RunSpec::once: the job was done before, by whom and when.
  const std::optional<Mark>& done() const { return done_; }

  /// From SIGTERM to SIGKILL: what was asked for, or less if a lease is too short for that.
  Millis kill_after() const { return kill_after_.value_or(context_.spec.kill_after); }

  /// Where the lock of this key is; as a URL without secrets.
  std::string location_of(const std::string& key) const;

  /// The holder of the lock that was not acquired, or of the mark that says that its job is done.
  const std::optional<Owner>& other() const { return other_; }

  /// Whether the launcher was told of a holder.
  bool has_told() const { return has_told_; }

 private:
  Result<std::unique_ptr<HeldLock>> get(std::size_t key, Cancel cancel);
  Result<std::unique_ptr<HeldLock>> take(std::size_t key, std::unique_ptr<Lease> lease,
                                         bool borrowed);
  Request request_for(const std::string& key) const;
  std::optional<Error> adapt_to(std::size_t key, Millis ttl, bool borrowed);
  void note_asked(std::optional<std::size_t> wanted);
  Result<void> get_all(HeldLocks& held, const Fd& stop);
  MarkName mark_name() const;
  Result<void> note(Result<std::optional<Mark>> found);
  Result<void> look(Backend& backend, Deadline deadline);
  Result<void> look_if_done(Backend& backend, const Wait& wait);
  Result<void> look_under_lock(HeldLock& lock);
  void look_again_if_busy(Backend& backend, const Error& error);
  Deadline waits_until() const;
  bool is_stopped() const;
  bool time_is_up() const;
  void tell_blocked(std::size_t key, const LockInfo& info);
  Error explain(Error error);
  void see_blocker_again();
  Error lost_while_waiting(const HeldLocks::Loss& loss, bool again) const;

  const RunContext& context_;
  const RunSpec& spec_;
  SupervisorEnd& link_;
  const int signals_;
  const std::vector<std::size_t> order_;  // in which the keys are taken
  std::size_t wanted_ = 0;                // the one that is being waited for
  // Of each key one of its own: several leases can be renewed at once only over connections of
  // their own.
  std::vector<std::unique_ptr<Backend>> backends_;
  std::vector<bool> reached_;  // the service has answered a request for this key
  std::optional<Millis> kill_after_;
  std::optional<Mark> done_;

  std::optional<Blocked> blocker_;  // the last message about who holds the key
  Deadline blocker_seen_ = kNever;
  std::optional<Owner> other_;
  bool has_told_ = false;
};

}  // namespace dlock
