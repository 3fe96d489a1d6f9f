// Getting all locks of a run, or none.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/held_locks.hpp"
#include "engine/run_context.hpp"

namespace dlock {

/// Used by one thread.  Messages about the holder of a lock go to the launcher.
class Acquisition {
 public:
  /// Both must outlive it.  `signals`, of this process itself, is readable when one has come.
  Acquisition(const RunContext& context, SupervisorEnd& link, int signals = -1);

  /// Waits until all locks are held, for RunSpec::wait in total.  Errc::cancelled when the link or
  /// `signals` is readable.  If it fails, or if done(), no lock is held.
  Result<HeldLocks> run();

  /// With RunSpec::once: the mark, if the job was done before.
  const std::optional<Mark>& done() const { return done_; }

  /// From SIGTERM to SIGKILL: as requested, or less if a lease is too short for that.
  Millis kill_after() const { return kill_after_.value_or(context_.spec.kill_after); }

  /// Where the lock of this key is, as a URL without secrets.
  std::string location_of(const std::string& key) const;

  /// The holder of the lock that was not acquired, or of the mark that says that its job is done.
  const std::optional<Owner>& other() const { return other_; }

  /// Whether the launcher was told of a holder.
  bool has_told() const { return has_told_; }

 private:
  Result<std::unique_ptr<HeldLock>> get(std::size_t key, Cancel cancel);
  Result<std::unique_ptr<HeldLock>> wait_for(std::size_t key, Request request, Wait& wait);
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
  const std::vector<std::size_t> order_;  // in which the locks are acquired
  std::size_t wanted_ = 0;                // the one that is being waited for
  // One for each key: leases can be renewed at the same time only over separate connections.
  std::vector<std::unique_ptr<Backend>> backends_;
  std::vector<bool> reached_;  // the service has answered a request for this key
  std::optional<Millis> kill_after_;
  std::optional<Mark> done_;

  std::optional<Blocked> blocker_;  // the last message about the holder
  Deadline blocker_seen_ = kNever;
  std::optional<Owner> other_;
  bool has_told_ = false;
};

}  // namespace dlock
