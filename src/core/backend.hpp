// What a lock service must offer so that `dlock run` can use it.
//
// This header is the whole contract between the engine and the backends: neither includes anything
// of the other's.  Each promise below is checked, for every backend, by tests/contract/.
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
  Millis ttl{30'000};  // how long the lock outlives a holder that has fallen silent
  Owner owner;

  Claim claim() const { return {mode, slots}; }
};

/// How `why` of force_release() begins where a lock is not broken: somebody who has its token, and
/// does not reach whoever keeps it, gives it back.
inline constexpr std::string_view kGivenBack = "@given back by ";

/// What its holder is told of a lock that force_release() took.  `where` is the server, or "".
Error taken_away(std::string_view where, std::string_view key, std::string_view why);

/// One lock as others see it.
struct LockInfo {
  struct Holder {
    Owner owner;
    std::string acquired_at;        // RFC 3339 in UTC; "" where not known
    std::optional<Millis> held;     // since when, by the service's own reckoning
    std::optional<Millis> expires;  // until it expires by itself; none: while its session lives
    std::optional<Millis> ttl;      // what each renewal sets that to
    bool endless = false;  // nothing ends it by itself: it has no TTL where it should have one
    std::optional<std::uint64_t> fence;
    std::optional<unsigned> slot;        // Lease::slot()
    std::optional<std::string> foreign;  // what other kind of program took it, e.g. "flock"
    std::string servers;  // Redlock: a hash of the list of which it has a majority; for resume()
  };
  struct Waiter {
    Owner owner;
    Mode mode = Mode::exclusive;
    std::optional<Millis> waiting;
  };
  std::string key;
  Mode mode = Mode::exclusive;
  unsigned slots = 1;
  std::vector<Holder> holders;                 // none: it is free
  std::optional<std::vector<Waiter>> waiters;  // none: the service cannot tell; else in their order
  // For on_blocked it is enough to know one holder, and how many there are.
  std::optional<unsigned> holder_count;
  std::optional<unsigned> waiter_count;  // with the caller
  std::optional<unsigned> place;  // of on_blocked: the caller's, 1 is next; none: in no order
  unsigned nodes_agreeing = 1;    // Redlock: how many servers tell this
  unsigned nodes_total = 1;
  std::vector<std::string> remarks;  // Redlock: who tells otherwise or nothing, a line each
};

/// What list_reachable() finds.
struct Listing {
  std::vector<LockInfo> locks;
  std::vector<Error> missing;  // what could not be seen, and why: one for each part of the service
};

/// How long acquire() may wait, and whom it tells.
struct Wait {
  Deadline until = kNever;  // one that has passed means: try once
  Cancel cancel;
  /// Called on the waiting thread with what is known of the lock: when it is found held, when the
  /// caller has its place, and when the holder changes.  Must not block.  Empty: nobody wants to
  /// know.
  std::function<void(const LockInfo&)> on_blocked;
  /// The service has answered an acquire() of this caller before: an outage is waited out.
  bool reached = false;
  /// The caller holds other locks, which others may wait for.  So a service that has no room for
  /// one more client is not waited for: perhaps it is those others who have taken it.
  bool holds = false;
  bool once = false;  // on_blocked is to be called once only: a waiter need not wake for more
};

class Backend;

/// One lock that is held.  Used by one thread at a time: LeaseKeeper has it while renewals run and
/// gives it back before release(), so a renewal can never overtake a release.
///
/// Destroying a Lease abandons it: no network, no waiting, and the lock ends as the Traits say.
class Lease {
 public:
  virtual ~Lease() = default;

  /// What the holder is shown with, and what breaks its lock: the id of the request, or another
  /// one, where a backend gave that one up while it waited.
  virtual const std::string& owner_id() const = 0;

  /// How long the lock outlives a holder that has fallen silent, where the service has the last
  /// word on that; none: as the request says.
  virtual std::optional<Millis> granted_ttl() const { return std::nullopt; }

  /// A number that is larger for every later grant of this key, if the service can give one.
  /// The child gets it as DLOCK_FENCE, to hand to whatever it writes to.
  virtual std::optional<std::uint64_t> fence() const = 0;

  /// Of a slots lock: a number of 1..N that no other holder has meanwhile; none in the other modes.
  /// It is the lowest free number, unless several requests are granted at the same moment.  The
  /// child has it as DLOCK_SLOT.
  virtual std::optional<unsigned> slot() const { return std::nullopt; }

  /// Until when the holder may trust the lock if nothing more is heard.  Counted from before the
  /// request was sent, minus the backend's allowance for clock drift; kNever where the kernel keeps
  /// the lock for us.
  virtual Deadline valid_until() const = 0;

  /// Proves that the lock is still ours and, where it has a TTL, extends it; on success
  /// valid_until() has moved.  Never re-acquires a lock that has expired.
  /// Fails with Errc::lost when it is certainly gone, and with Errc::unreachable when that cannot
  /// be told; then the lock may be trusted until valid_until(), and renew() may be called again.
  /// A call that was cancelled or ran out of time leaves the lease fit for renew() and release().
  virtual Result<void> renew(Deadline deadline, Cancel cancel) = 0;

  /// Turns readable when there may be news of this lock (session expired, key taken away,
  /// connection dropped): renew() then tells what it was, and drains it.  Costs neither a round
  /// trip nor a thread.  -1: there is none; renew() is to be called each second instead.
  virtual int event_fd() { return -1; }

  /// Reads what has made event_fd() readable, without waiting.  False: it was not about this lock.
  virtual bool has_news() { return true; }

  /// Asks for the news that event_fd() does not report without that, at a cost that a short job
  /// should not pay.  The keeper calls it once the job has run for a second, and renew() next, for
  /// what happened before.
  virtual void subscribe() {}

  /// The command has ended, but the lock is to be held until `until`, and no longer.  Says so in
  /// the record of the holder (Owner::ended), which then names the calling process, or none.  Where
  /// Traits::ends_on is ttl the lock now expires at `until` by itself, and the lease is only to be
  /// destroyed.  Elsewhere it is to be kept and released as before.  Fails as renew() does; may be
  /// called again, or release().
  virtual Result<void> end_command(Deadline until, Deadline deadline, Cancel cancel) = 0;

  /// While any process on this machine has all of these descriptors open, no acquire() gets the
  /// lock.  The front keeps copies, so that the sudden death of the process that acquired frees
  /// nothing before the job is dead.  At most util::kMostPassed, and one more of a lock that is
  /// borrowed.  Empty: there are none.
  virtual std::vector<int> witness_fds() const { return {}; }

  /// Gives the lock up and wakes whoever waits for it; frees it in spite of copies of
  /// witness_fds().  Errc::lost if it was no longer ours: that must never take it from the next
  /// holder.  It is called after a loss, too, when the job has ended: there may be something left
  /// that keeps others out.  Errc::unreachable if that cannot be told: may be called again, until
  /// valid_until().  Otherwise only destroy afterwards.
  virtual Result<void> release(Deadline deadline, Cancel cancel) = 0;

  /// As release(), of an exclusive lock; and in the same step it is remembered that the job of this
  /// key is done: whoever gets the lock next finds that by Backend::find_mark(), also if nobody
  /// hears of the success.  An earlier mark of that name is replaced.  It is remembered either
  /// under the lock or not at all: after Errc::lost there is no mark by this lease.
  /// Errc::unreachable if that cannot be told: may be called again, until valid_until(), and
  /// succeeds if an earlier call has done it, unless the mark was forgotten since.  Other errors
  /// say why the service does not remember it: the lock is still ours, and to be released.  Not for
  /// a lease that resume() has made.
  virtual Result<void> complete(const Completion& completion, Deadline deadline, Cancel cancel);

  /// As Backend::find_mark(), of `backend`, which has acquired it: asked where the lock is held, so
  /// that a server that was demoted meanwhile is not believed.
  virtual Result<std::optional<Mark>> find_mark(Backend& backend, const MarkName& name,
                                                Deadline deadline);
};

/// What a backend can and cannot do, as data: the CLI refuses impossible requests by it, `dlock
/// backends` prints it, and the contract tests skip by it and by nothing else.
struct Traits {
  enum class Reach { host, network };
  /// process_exit: only the holder can let go, also after a force_release(): by release(), or when
  /// all copies of witness_fds() are closed.
  /// session: as ttl, but who looks cannot tell when that will be.
  enum class EndsOn { process_exit, session, ttl };
  enum class Order { none, kernel, fifo };

  bool shared = false;
  bool slots = false;
  bool fencing = false;
  bool knows_waiters = false;
  bool remembers = false;  // take_numbers(), lease_window(), and the marks of complete()
  bool resumes = false;    // resume()
  Reach reach = Reach::network;
  EndsOn ends_on = EndsOn::ttl;
  Order order = Order::none;
};

/// A connection to one lock service.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Where the locks are, as a URL without secrets: `file:///run/lock/dlock`.
  virtual std::string location() const = 0;

  /// Where the lock `key` is, if that is only a part of location(): its shard.
  virtual std::string location_of(std::string_view key) const;

  /// Waits until the lock is ours.  Waits by being woken (a watch, a subscription, a blocking
  /// statement, a kernel queue), and where a holder can vanish without a wake-up, until its lease
  /// would run out; on a timer of a second at most only where there is nothing to be woken by.
  /// Returns within one network timeout of Cancel firing, with
  /// Errc::cancelled; Errc::busy when wait.until has passed; Errc::conflict, at once, when the key
  /// is held in a mode or with a number of slots that cannot be mixed with this one.  On failure
  /// nothing is left behind that others would wait for.
  virtual Result<std::unique_ptr<Lease>> acquire(const Request& request, const Wait& wait) = 0;

  /// The locks that are held or waited for and whose keys start with `prefix`, sorted by key. Takes
  /// no lock and blocks nobody.  This and what follows: no answer is waited for longer than the
  /// connect timeout, also if the deadline is later.
  virtual Result<std::vector<LockInfo>> list(std::string_view prefix, Deadline deadline) = 0;

  /// The same, but a part of the service that does not answer hides the rest no more: for people,
  /// who are told what is missing.
  virtual Result<Listing> list_reachable(std::string_view prefix, Deadline deadline);

  /// One lock; no holders if it is free.
  virtual Result<LockInfo> inspect(std::string_view key, Deadline deadline) = 0;

  /// Takes the lock from the holder `owner_id`, and from no other: an operator who looked a moment
  /// too early must not break the lock of whoever came next.  That holder's keeper learns of it as
  /// Errc::lost, with `why` in the message, at once through event_fd() or at its next renewal;
  /// `why` begins with who does it: "root on ops-1 (pid 12): the disk is full".  If it begins with
  /// kGivenBack, the error is no loss but in_order: somebody who has its token gives it back.
  /// Where Traits::ends_on is process_exit, only the holder can let go: the lock is free when it
  /// has called release(), which is waited for until the deadline; Errc::unreachable if by then its
  /// renew() has not even failed.
  /// False: it was gone already.
  virtual Result<bool> force_release(std::string_view key, std::string_view owner_id,
                                     std::string_view why, Deadline deadline) = 0;

  /// The lease of `holder`, which inspect() has shown among those of `lock`, for a process that did
  /// not acquire it: whoever did has destroyed its Lease.  To be renewed, by `ttl`, or to be
  /// released, as any other one; that tells whether it is held still, and nothing is promised of
  /// valid_until() before.  Waiters hear of its release within a second.
  /// Only with Traits::resumes; elsewhere Errc::unsupported.
  virtual Result<std::unique_ptr<Lease>> resume(const LockInfo& lock,
                                                const LockInfo::Holder& holder, Millis ttl,
                                                Deadline deadline);

  /// What the functions below keep; only with Traits::remembers.  Null: there are none.
  virtual Records* records() { return nullptr; }

  /// Takes `count` numbers (1 or more) of the counter `name`, which passed check_key(), in one
  /// step; returns the first, the others follow it.  Numbers begin with 1, and nobody ever gets one
  /// of them again: the step is durable before this returns, whatever is killed or restarted.  A
  /// later call gets larger ones.  A counter and a lock of the same name have nothing to do with
  /// each other, and list() does not show counters.
  /// Errc::invalid if fewer than `count` are left up to kLastNumber; none is taken then.
  /// Errc::conflict if something else stands where the counter should be.  Errc::unreachable, as
  /// everywhere, if it is not known whether the step was done: then the numbers are wasted.  For
  /// that reason a backend may repeat a step whose answer was lost.
  virtual Result<std::uint64_t> take_numbers(std::string_view name, std::uint64_t count,
                                             Deadline deadline);

  /// Leases a window for snowflake ids that is `length` long, in one step that is durable before
  /// this returns; no two windows of a worker ever overlap.  All clients with the same location and
  /// prefix draw from the same workers.  Errors as those of take_window(); otherwise as above.
  virtual Result<IdWindow> lease_window(Millis length, Deadline deadline);

  // What Lease::complete() has remembered.  Marks are no locks: list() and inspect() do not show
  // them, and they outlive a restart of the service if its data do.  A mark whose time is over is
  // as one that is not there, and is removed some time after that.

  /// None if nothing is remembered under this name.  Sees what was completed, or forgotten, before
  /// it was called, by whomever; and what one call has seen, each later call sees.
  virtual Result<std::optional<Mark>> find_mark(const MarkName& name, Deadline deadline);

  /// Makes what complete() needs and is missing, as a table or a directory, so that no job is run
  /// whose end could not be remembered.  Warns if what is remembered may not outlive a restart of
  /// the service, once.  To be called by who holds the lock.
  virtual Result<void> prepare_marks(std::string_view key, Deadline deadline);

  /// All marks whose keys start with `prefix`, sorted by name.
  virtual Result<std::vector<Mark>> list_marks(std::string_view prefix, Deadline deadline);

  /// Forgets one, whoever holds the lock: a job that runs at this time is remembered all the same.
  /// False: there was none.
  virtual Result<bool> forget_mark(const MarkName& name, Deadline deadline);

 private:
  Error has_no(std::string_view what) const;
};

/// Where a lock service is and how to get in, resolved from flags, environment and config file.
struct Target {
  Url url;  // the scheme is that of one of the forms; hosts and path are empty where not given
  std::vector<Url> servers;  // where each server has a URL of its own; then url.hosts is empty
  std::optional<std::string> prefix;
  Millis connect_timeout{5'000};
  std::string named_by;       // for messages: "DLOCK_BACKEND"; "" if the command line names it
  std::string password_from;  // the file, if it is from one
  std::string options;        // " -b prod": those that a command needs to find the same locks
  std::string auth;           // content of the secret file that the URL names; empty: it names none
  /// Where several databases share the keys (core/sharded_backend.hpp): each complete, with a URL
  /// of its own and without shards; then url has only the scheme, and open() is not for this
  /// Target.
  std::vector<Target> shards;
};

/// The error of a service that does not answer, or refuses us, with where its name is from, and its
/// password: cron, sudo and a shell differ in that; and with the command that finds out more.
Error with_origin(Error error, const Target& target);

/// A row of the one table of backends (backends/registry.cpp).
struct BackendEntry {
  std::string_view name;  // what --backend takes, and the scheme of its URLs
  std::array<std::string_view, 2> aliases = {};
  std::span<const UrlForm> forms = {};  // of its URLs; the scheme of the first is its name
  std::string_view server_scheme = {};  // of a URL for one of its servers, where each may have one
  std::string_view brief;
  Traits traits;
  /// Names the database that a target means, the same for each way to write it (core/spelling.hpp):
  /// `redis://h:6379/0`.  Without user, password and TLS.  Keys are placed by it (core/shards.hpp),
  /// so it can never change.  Not to be shown.  Errc::invalid says what is wrong with the target,
  /// and shows no text of its URL that is no good.  No network.
  Result<std::string> (*place)(const Target& target) = nullptr;
  /// This and place() are null where this dlock was built without the backend.
  Result<std::unique_ptr<Backend>> (*open)(const Target& target, Deadline deadline,
                                           Cancel cancel) = nullptr;
  /// What makes its tables, for an administrator of a database to run; null where it has none.
  /// Takes a prefix that place() accepts.
  std::string (*schema)(std::string_view prefix) = nullptr;
  std::string_view usual_prefix = {};  // of the tables
  /// For `dlock doctor`; null where open() is.  `ttl` is that of the jobs.
  Result<std::unique_ptr<Examination>> (*examine)(const Target& target, Millis ttl) = nullptr;
};

}  // namespace dlock
