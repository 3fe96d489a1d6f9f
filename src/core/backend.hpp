// What a lock service must offer so that `dlock run` can use it.
//
// This header is the whole contract between the engine and the backends: neither includes a header
// of the other.  tests/contract/ checks each promise below for every backend.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/cancel.hpp"
#include "core/examination.hpp"
#include "core/mark.hpp"
#include "core/mode.hpp"
#include "core/numbers.hpp"
#include "core/owner.hpp"
#include "core/records.hpp"
#include "core/result.hpp"
#include "core/url.hpp"
#include "core/url_form.hpp"
#include "util/clock.hpp"

namespace dlock {

struct Request {
  std::string key;  // passed check_key(); a backend maps it into its namespace
  Mode mode = Mode::exclusive;
  unsigned slots = 1;  // how many may hold at once; 1 in the other modes
  Millis ttl{30'000};  // the lock expires this long after its last renewal
  Owner owner;         // its id is of no earlier request

  Claim claim() const { return {mode, slots}; }
};

/// Why force_release() takes a lock.
struct Reason {
  std::string_view by;      // and what for: "root on ops-1 (pid 12): the disk is full"
  bool given_back = false;  // it has the lock id; else it is an operator, who breaks the lock
};

/// What a backend keeps of it for the holder: "force-released by root on ops-1 (pid 12)".
std::string format_reason(const Reason& reason);

/// The error that a holder gets whose lock force_release() has taken.  `where` is the server, or
/// "".  `why`: what format_reason() has made.
Error taken_away(std::string_view where, std::string_view key, std::string_view why);

/// One lock as others see it.
struct LockInfo {
  struct Holder {
    Owner owner;
    std::string acquired_at;        // RFC 3339 in UTC; "" if not known
    std::optional<Millis> held;     // for how long, by the clock of the service
    std::optional<Millis> expires;  // in how long, without a renewal; none: when its session ends
    std::optional<Millis> ttl;      // what each renewal sets `expires` to
    bool endless = false;  // the lock never expires: it has no TTL where it should have one
    std::optional<std::uint64_t> fence;
    std::optional<unsigned> slot;        // Lease::slot()
    std::optional<std::string> foreign;  // the kind of another program that holds it, e.g. "flock"
    std::string servers;  // Redlock: a hash of the server list of the holder; for resume()
  };
  struct Waiter {
    Owner owner;
    Mode mode = Mode::exclusive;
    std::optional<Millis> waiting;
    bool is_offered = false;  // the lock is kept for it, for a second at most, until it comes
  };
  std::string key;
  Mode mode = Mode::exclusive;
  unsigned slots = 1;
  std::vector<Holder> holders;                 // none: the lock is free
  std::optional<std::vector<Waiter>> waiters;  // in their order; none: the service does not know
  // For on_blocked, `holders` and `waiters` may be incomplete, and these are set:
  std::optional<unsigned> holder_count;
  std::optional<unsigned> waiter_count;  // with the caller
  std::optional<unsigned> place;         // of the caller, 1 is next; none: the queue has no order
  unsigned nodes_agreeing = 1;           // Redlock: how many servers say the above
  unsigned nodes_total = 1;
  std::vector<std::string> remarks;  // Redlock: a line for each server that says something else
};

/// What list_reachable() finds.
struct Listing {
  std::vector<LockInfo> locks;
  std::vector<Error> missing;  // one for each part of the service that could not be read
};

/// How long acquire() may wait, and how it reports that it waits.
struct Wait {
  Deadline until = kNever;  // an instant that has passed means: try once
  Cancel cancel;
  /// Called on the waiting thread: when the lock is found held, when the place of the caller in the
  /// queue is known, and when the waiter wakes up and finds another holder.  Must not block.  May
  /// be empty.
  std::function<void(const LockInfo&)> on_blocked;
  /// The service has answered an earlier acquire() of this caller, so acquire() waits until an
  /// outage is over.
  bool reached = false;
  /// The caller holds other locks.  If the service has no room for one more client, acquire() fails
  /// and does not wait: the clients that use up the room may wait for those locks.
  bool holds = false;
  bool once = false;  // on_blocked is called once only, so a waiter need not wake up for more
};

class Backend;

/// One lock that is held.  One thread at a time uses it: the thread that renews has it until it has
/// ended, before release(), so a renewal can never overtake a release.
///
/// Destroying a Lease abandons it, without network and without waiting: the lock ends as
/// Traits::ends_on says.
class Lease {
 public:
  virtual ~Lease() = default;

  /// The id under which the holder is shown, and which force_release() takes.  It begins with the
  /// id of the request, or is another one if the backend had to replace that while it waited.
  virtual const std::string& owner_id() const = 0;

  /// The TTL, if the service has set another one than the request asks for.
  virtual std::optional<Millis> granted_ttl() const { return std::nullopt; }

  /// The fencing number: larger for each later grant of this key.  None if the service has none.
  /// The child gets it as DLOCK_FENCE, and sends it with each write to what the lock protects.
  virtual std::optional<std::uint64_t> fence() const = 0;

  /// Of a slots lock, a number of 1..N that no other holder has at the same time; none in the other
  /// modes.  It is the lowest free number, unless several requests are granted at the same moment.
  /// The child gets it as DLOCK_SLOT.
  virtual std::optional<unsigned> slot() const { return std::nullopt; }

  /// Until when the holder may rely on the lock without another renewal.  The backend counts from
  /// the instant before it sent the last successful request, and subtracts an allowance for clock
  /// drift.  kNever if the kernel keeps the lock.
  virtual Deadline valid_until() const = 0;

  /// Proves that the lock is still ours and, if it has a TTL, extends it.  Never acquires an
  /// expired lock again.
  ///   - Ok: valid_until() has moved.
  ///   - Errc::lost: the lock is certainly not ours any more.
  ///   - Errc::unreachable: it is not known.  The holder may rely on the lock until valid_until(),
  ///     and may call renew() again.
  ///   - Errc::cancelled: as Errc::unreachable.
  virtual Result<void> renew(Deadline deadline, Cancel cancel) = 0;

  /// A descriptor that becomes readable when something may have happened to this lock: the session
  /// has expired, the key was deleted, the connection is closed.  renew() then says what, and reads
  /// the descriptor empty.  No round trip and no thread is spent on it.  -1: there is none, and the
  /// engine calls renew() each second instead.
  virtual int event_fd() { return -1; }

  /// Reads event_fd() empty, without waiting.  False: what was read is not about this lock.
  virtual bool has_news() { return true; }

  /// Subscribes to events that event_fd() does not report without it, at a cost that a short job
  /// should not pay.  The engine calls it when the job has run for a second, and calls renew()
  /// next, for what has happened before.
  virtual void subscribe() {}

  /// The command has ended, but the lock stays held until `until`.  The record of the holder says
  /// so from now on (Owner::ended), and names the calling process, or none.
  ///   - If Traits::ends_on is ttl, the lock now expires at `until`, and the caller only destroys
  ///     the lease.
  ///   - Else the caller keeps and releases the lease as before.
  /// Fails as renew() does; the caller may call it again, or release().
  virtual Result<void> end_command(Deadline until, Deadline deadline, Cancel cancel) = 0;

  /// While a process on this machine has all of these descriptors open, no acquire() is granted the
  /// lock.  The launcher keeps copies: so if the process that acquired the lock dies, the lock
  /// stays held until the job is dead.  At most util::kMostPassed, and one more of a lock that is
  /// borrowed.  May be empty.
  virtual std::vector<int> lock_fds() const { return {}; }

  /// Releases the lock, in spite of copies of lock_fds(), and wakes the next waiter.  It never
  /// takes the lock from a later holder.  The engine calls it after a loss, too, when the job has
  /// ended: something may be left in the service that excludes others.
  ///   - Ok: the lock is released.
  ///   - Errc::lost: the lock was not ours any more.
  ///   - Errc::unreachable: it is not known.  The caller may call it again, until valid_until().
  /// In the first two cases the caller only destroys the lease.
  virtual Result<void> release(Deadline deadline, Cancel cancel) = 0;

  /// Releases an exclusive lock and records, in the same atomic step, that its job is done.  The
  /// next holder finds that mark by Backend::find_mark(), even if the reply of this call was lost.
  /// The mark replaces an earlier one of its name.  Not for a lease that resume() has made.
  ///   - Ok: the mark is there, and the lock is released.
  ///   - Errc::lost: the lock was not ours any more, and this lease has written no mark.
  ///   - Errc::unreachable: it is not known.  The caller may call it again, until valid_until();
  ///     that succeeds if an earlier call has written the mark, unless it was deleted since.
  ///   - Others: the service cannot write the mark.  The lock is still ours, to be released.
  virtual Result<void> complete(const Completion& completion, Deadline deadline, Cancel cancel);

  /// As Backend::find_mark() of `backend`, which has acquired this lock.  It asks the server that
  /// has the lock, so that a server which was demoted meanwhile is not believed.
  virtual Result<std::optional<Mark>> find_mark(Backend& backend, const MarkName& name,
                                                Deadline deadline);
};

/// What a backend can do, as data.  The command line refuses impossible requests by it, `dlock
/// backends` prints it, and nothing else decides which contract tests are skipped.
struct Traits {
  enum class Reach { host, network };
  /// What ends the lock of a holder that does not renew or release it:
  ///   - ttl: the TTL has passed since the last renewal.  list() says when that will be.
  ///   - session: the same, but list() cannot say when.
  ///   - process_exit: all copies of lock_fds() are closed.  Nothing else ends it.  So after
  ///     force_release(), too, the lock stays held until the holder releases it.
  enum class EndsOn { process_exit, session, ttl };
  enum class Order { none, kernel, fifo };

  bool shared = false;
  bool slots = false;
  bool fencing = false;
  bool knows_waiters = false;
  bool remembers = false;  // records()
  bool resumes = false;    // resume()
  Reach reach = Reach::network;
  EndsOn ends_on = EndsOn::ttl;
  Order order = Order::none;
};

/// A connection to one lock service.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Where the locks are, as a URL without secrets: `file:///run/dlock`.
  virtual std::string location() const = 0;

  /// Where the lock `key` is: location(), or the shard of the key.
  virtual std::string location_of(std::string_view key) const;

  /// Waits until the lock is ours.  The service wakes the waiter: by a watch, a subscription, a
  /// blocking statement, or a queue of the kernel.  Where a holder can vanish without that, the
  /// waiter also wakes up when the lease of the holder expires.  It asks again and again only if
  /// the service cannot wake it.
  ///   - Errc::busy: wait.until has passed.
  ///   - Errc::conflict, at once: the lock is held with a claim that cannot be mixed with this one.
  ///   - Errc::cancelled, within one network timeout after Cancel fires.
  ///   - Others: the service cannot be used.
  /// A failed acquire() leaves nothing behind that others would wait for; if the service cannot be
  /// reached, something may be left until the ttl is over, but never with Errc::busy.
  virtual Result<std::unique_ptr<Lease>> acquire(const Request& request, const Wait& wait) = 0;

  /// The locks that are held or waited for and whose keys start with `prefix`, sorted by key.  It
  /// takes no lock and blocks no request.  This and the functions below wait for each answer for
  /// the connect timeout at most, even if the deadline is later.
  virtual Result<std::vector<LockInfo>> list(std::string_view prefix, Deadline deadline) = 0;

  /// The same, but if a part of the service does not answer, the locks of the other parts are
  /// listed all the same: for commands that print what is missing.
  virtual Result<Listing> list_reachable(std::string_view prefix, Deadline deadline);

  /// The lock `key`; without holders if it is free.
  virtual Result<LockInfo> inspect(std::string_view key, Deadline deadline) = 0;

  /// Takes the lock from the holder `owner_id`, and from no other: an operator who has looked a
  /// moment too early must not break the lock of the next holder.  renew() of that holder fails
  /// with Errc::lost and `why` in the message, at once if it has event_fd(), else at its next call.
  /// That error has in_order set if the lock was given back.
  ///   - True: the lock was taken away.  If Traits::ends_on is process_exit, it is free only when
  ///     the holder has released it, and this waits for that until the deadline.
  ///   - False: that holder did not hold it any more.
  ///   - Errc::unreachable: it is not known; or, if Traits::ends_on is process_exit, renew() of the
  ///     holder has not even failed until the deadline.
  virtual Result<bool> force_release(std::string_view key, std::string_view owner_id,
                                     const Reason& why, Deadline deadline) = 0;

  /// A lease of the lock that `holder` holds, one of those that inspect() has shown in `lock`, for
  /// a process that has not acquired it.  The process that has acquired it must have destroyed its
  /// Lease.  The first renew(), which extends by `ttl`, or release() says whether the lock is still
  /// held; before that, valid_until() promises nothing.  After release(), waiters wake up within a
  /// second.  Errc::unsupported without Traits::resumes.
  virtual Result<std::unique_ptr<Lease>> resume(const LockInfo& lock,
                                                const LockInfo::Holder& holder, Millis ttl,
                                                Deadline deadline);

  /// The store of the functions below; null without Traits::remembers.
  virtual Records* records() { return nullptr; }

  /// Takes `count` numbers (1 or more) of the counter `name`, which has passed check_key(). Returns
  /// the first; the others follow it.  Numbers begin with 1, and a later call returns larger ones.
  /// No number is ever returned twice: the step is durable before this returns.  A counter and a
  /// lock of the same name are independent, and list() does not show counters.
  ///   - Errc::invalid: fewer than `count` are left up to kLastNumber, and none was taken.
  ///   - Errc::conflict: something else is stored under the name of the counter.
  ///   - Errc::unreachable: it is not known whether the numbers were taken.
  virtual Result<std::uint64_t> take_numbers(std::string_view name, std::uint64_t count,
                                             Deadline deadline);

  /// Leases a window of `length` for snowflake ids.  It is durable before this returns, and no two
  /// windows of a worker ever overlap.  All clients with the same location and prefix share the
  /// workers.  Fails as take_window() and take_numbers() do.
  virtual Result<IdWindow> lease_window(Millis length, Deadline deadline);

  // The marks that Lease::complete() has written.  Marks are not locks: list() and inspect() do not
  // show them, and they outlive a restart of the service if its data do.  A mark that has expired
  // is not found any more, and is deleted some time later.

  /// None if there is no mark of this name.  It finds what any client has written or deleted before
  /// the call; and what one call has found, each later call finds.
  virtual Result<std::optional<Mark>> find_mark(const MarkName& name, Deadline deadline);

  /// Creates a table or a directory that complete() needs, so that no job is run whose end could
  /// not be recorded.  Warns, once, if marks may not outlive a restart of the service.  The holder
  /// of the lock calls it.
  virtual Result<void> prepare_marks(std::string_view key, Deadline deadline);

  /// All marks whose keys start with `prefix`, sorted by name.
  virtual Result<std::vector<Mark>> list_marks(std::string_view prefix, Deadline deadline);

  /// Deletes a mark, without regard to the lock: if its job runs at this time, it writes a new one.
  /// False: there was none.
  virtual Result<bool> forget_mark(const MarkName& name, Deadline deadline);

 private:
  Error has_no(std::string_view what) const;
};

/// Where a lock service is and how to log in, from flags, environment and config file.
struct Target {
  Url url;  // with the scheme of one of the forms; hosts and path are empty if not given
  std::vector<Url> servers;  // if each server has a URL of its own; then url.hosts is empty
  std::optional<std::string> prefix;
  Millis connect_timeout{5'000};
  std::string named_by;       // for messages: "DLOCK_BACKEND"; "" if the command line names it
  std::string password_from;  // the file, if it is from one
  std::string options;        // " -b prod": what a command needs to find the same locks
  std::string auth;           // content of the secret file that the URL names, if it names one
  /// If several databases share the keys (core/sharded_backend.hpp): a complete target for each,
  /// without shards.  Then url has only the scheme, and open() is not called for this Target.
  std::vector<Target> shards;
};

/// Adds to the error of a service that does not answer, or refuses us, where its URL and its
/// password are from, since cron, sudo and a shell differ in that, and the command that finds out
/// more.
Error with_origin(Error error, const Target& target);

/// A row of the one table of backends (backends/registry.cpp).
struct BackendEntry {
  std::string_view name;  // what --backend takes, and the scheme of its URLs
  std::array<std::string_view, 2> aliases = {};
  std::span<const UrlForm> forms = {};  // of its URLs; the scheme of the first is its name
  std::string_view server_scheme = {};  // of a URL for one of its servers, if each may have one
  std::string_view brief;
  Traits traits;
  /// The name of the database that a target means, the same for each way to write it
  /// (core/spelling.hpp): `redis://h:6379/0`, without user, password and TLS.  It decides which
  /// shard has a key (core/shards.hpp), so it can never change.  It is not for messages.
  /// Errc::invalid says what is wrong with the target, without the text that is wrong.  No network.
  Result<std::string> (*place)(const Target& target) = nullptr;
  /// All keys of such a target are one lock: a command that takes two may wait for itself.  Null:
  /// of none.
  bool (*has_one_lock)(const Target& target) = nullptr;
  /// This and place() are null if this dlock was built without the backend.
  Result<std::unique_ptr<Backend>> (*open)(const Target& target, Deadline deadline,
                                           Cancel cancel) = nullptr;
  /// The statements that create its tables, for an administrator of the database; null if it has
  /// none.  `prefix` is one that place() accepts.
  std::string (*schema)(std::string_view prefix) = nullptr;
  std::string_view usual_prefix = {};  // of the tables
  /// For `dlock doctor`; null if open() is.  `ttl` is that of the jobs.
  Result<std::unique_ptr<Examination>> (*examine)(const Target& target, Millis ttl) = nullptr;
};

}  // namespace dlock
