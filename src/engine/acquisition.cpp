// Several keys.  All runs acquire theirs in the order of their bytes, so two of them never wait for
//   each other.  Locks that are held are kept while the next one is waited for.  If one is lost
//   then, nothing has been done under it yet: all are released, and the run starts again.
// Loss while waiting.  The renewers report a loss (HeldLock::lost_fd), which ends the wait.  A
//   lease whose server does not answer expires silently.  HeldLocks::check(), which goes by the
//   clock, finds that at the latest when all other locks are held.
// Once.  Whether the job is done is checked twice.  The first check is made before the lock is
//   requested, so that most later runs cost the service one request.  The second one is made under
//   the lock, and decides: no other run can complete the job until the lock is released.  The lease
//   is not renewed meanwhile: it and the backend may share a connection, which one thread uses.

#include "engine/acquisition.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/patience.hpp"
#include "core/sharded_backend.hpp"
#include "engine/describe.hpp"
#include "engine/run_events.hpp"
#include "reentry/reenter.hpp"
#include "util/duration.hpp"
#include "util/host.hpp"
#include "util/jitter.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"
#include "util/random_id.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

using util::in_quotes;
using util::Level;

// Pause before the acquisition starts again because a granted lock was lost.
constexpr Millis kBeforeStartingAgain{500};

// Indices into `keys`, in the order in which the locks are acquired.
std::vector<std::size_t> order_of(const std::vector<std::string>& keys) {
  std::vector<std::size_t> out(keys.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::sort(out.begin(), out.end(),
            [&](std::size_t one, std::size_t two) { return keys[one] < keys[two]; });
  return out;
}

// False, with errno set, if the system refuses.
bool add_to(const Fd& epoll, int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  return epoll && epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

Error cannot_watch() { return {Errc::unreachable, std::string("epoll: ") + strerror(errno)}; }

}  // namespace

Acquisition::Acquisition(const RunContext& context, SupervisorEnd& link, int signals)
    : context_(context),
      spec_(context.spec),
      link_(link),
      signals_(signals),
      order_(order_of(spec_.keys)),
      backends_(spec_.keys.size()),
      reached_(spec_.keys.size()) {}

Deadline Acquisition::waits_until() const {
  return spec_.wait ? after(context_.started, *spec_.wait) : kNever;
}

bool Acquisition::is_stopped() const {
  return util::wait_readable(link_.fd(), Deadline{}) ||
         (signals_ >= 0 && util::wait_readable(signals_, Deadline{}));
}

bool Acquisition::time_is_up() const { return Clock::now() >= waits_until(); }

std::string Acquisition::location_of(const std::string& key) const {
  const auto at = std::find(spec_.keys.begin(), spec_.keys.end(), key) - spec_.keys.begin();
  const auto& backend = backends_[static_cast<std::size_t>(at)];
  return backend ? backend->location_of(key) : context_.target.url.redacted();
}

Request Acquisition::request_for(const std::string& key) const {
  Request request{.key = key, .mode = spec_.mode, .slots = spec_.slots, .ttl = spec_.ttl};
  request.owner = context_.owner;
  request.owner.id = util::random_id();
  request.owner.host = util::host_name();
  request.owner.user = util::user_name();
  request.owner.command = spec_.argv.front();
  request.owner.label = spec_.label;
  return request;
}

void Acquisition::tell_blocked(std::size_t key, const LockInfo& info) {
  reached_[key] = true;
  // Many services report the holder first, and our place later.
  const bool is_news = !blocker_ || (blocker_->place < 0 && info.place);
  blocker_ = Blocked::by(key, info);
  blocker_seen_ = Clock::now();
  if (!info.holders.empty()) other_ = info.holders.front().owner;
  if (is_news && !time_is_up()) log_waiting(context_, spec_.keys[key], info, other_);
  // The launcher may be stopped, and the message of the grant needs room.
  if (!time_is_up() && link_.has_room() && link_.send({ToLauncher::Kind::blocked, *blocker_})) {
    if (!std::exchange(has_told_, true)) util::log_beside_status_line(true);
  }
}

Error Acquisition::lost_while_waiting(const HeldLocks::Loss& loss, bool again) const {
  if (spec_.once) {
    return {Errc::unreachable, "lost " + in_quotes(loss.key) + " before " + spec_.argv.front() +
                                   " was started" + (again ? "; taking it again: " : ": ") +
                                   loss.error.message};
  }
  return {Errc::unreachable, "lost " + in_quotes(loss.key) + " while waiting for " +
                                 in_quotes(spec_.keys[wanted_]) +
                                 (again ? "; taking all again: " : ": ") + loss.error.message};
}

// A waiter learns of the next holder when that concerns it, which may be much later.
void Acquisition::see_blocker_again() {
  constexpr Millis kPatience{500};
  if (!backends_[wanted_]) return;
  const auto now = backends_[wanted_]->inspect(spec_.keys[wanted_], after(Clock::now(), kPatience));
  if (!now || now.value().holders.empty()) return;
  blocker_ = Blocked::by(wanted_, now.value());
  other_ = now.value().holders.front().owner;
  blocker_seen_ = Clock::now();
}

Error Acquisition::explain(Error error) {
  const std::string& key = spec_.keys[wanted_];
  constexpr Millis kRounding{50};
  const bool waits = spec_.wait && *spec_.wait > Millis{0};
  const bool waited = waits && Clock::now() + kRounding >= after(context_.started, *spec_.wait);
  const Millis tried = std::chrono::floor<std::chrono::seconds>(since(context_.started));
  if (error.code == Errc::unreachable && !waited && tried > Millis{0}) {
    error.message += "; tried for " + util::format_duration(tried);
  }
  error = with_origin(std::move(error), context_.target);
  if (error.code != Errc::busy && !(error.code == Errc::unreachable && waited)) return error;
  if (error.code == Errc::busy) {
    error.message = in_quotes(key) + " is busy";
    if (waits) see_blocker_again();
    if (blocker_) {
      auto held = blocker_->held();
      if (held) *held += since(blocker_seen_);
      error.message = in_quotes(key) + " is " + held_in_words(blocker_->holder.data(), held);
    }
  }
  if (waits) {
    const Millis tenths = (since(context_.started) + kRounding) / 100 * 100;
    error.message = "gave up after " + util::format_duration(std::max(*spec_.wait, tenths)) + ": " +
                    error.message;
    if (blocker_ && error.code == Errc::busy) {
      error.message += "; details: dlock show" + context_.target.options +
                       (key.starts_with('-') ? " -- " : " ") + util::in_shell(key);
    }
  }
  return error;
}

// Adapts kill_after to a ttl other than the requested one.
std::optional<Error> Acquisition::adapt_to(std::size_t key, Millis ttl, bool borrowed) {
  Millis kill_after = spec_.kill_after_by_ttl ? default_kill_after(ttl) : spec_.kill_after;
  if (borrowed && kill_after * 2 >= ttl) kill_after = ttl / 2 - Millis{1};
  kill_after_ = std::min(kill_after_.value_or(kill_after), kill_after);
  if (kill_after * 2 < ttl) return std::nullopt;
  return Error{Errc::invalid, location_of(spec_.keys[key]) + " grants a TTL of " +
                                  util::format_duration(ttl) + ": --kill-after " +
                                  util::format_duration(spec_.kill_after) +
                                  " must be less than half of that"};
}

Result<std::unique_ptr<HeldLock>> Acquisition::take(std::size_t key, std::unique_ptr<Lease> lease,
                                                    bool borrowed) {
  const std::string& name = spec_.keys[key];
  std::optional<Error> refused;
  if (const auto ttl = lease->granted_ttl()) refused = adapt_to(key, *ttl, borrowed);
  const Margins margins{kill_after()};
  if (!refused && Clock::now() >= margins.term_at(lease->valid_until())) {
    refused = Error{Errc::unreachable, location_of(name) + " granted " + in_quotes(name) +
                                           " too late: too little of its --ttl is left"};
  }
  if (refused) {
    (void)lease->release(after(Clock::now(), context_.target.connect_timeout), Cancel());
    return *refused;
  }
  reached_[key] = true;
  const Millis ttl = lease->granted_ttl().value_or(spec_.ttl);
  const HeldLock::Spec spec{
      .renewal = {.key = name, .ttl = ttl, .margins = margins, .event_log = &context_.event_log},
      .network_timeout = context_.target.connect_timeout,
      // The outer run holds the lock as long as any process needs it.
      .ends_on = borrowed ? Traits::EndsOn::process_exit : context_.entry.traits.ends_on,
      .borrowed = borrowed};
  const auto fence = lease->fence();
  util::log(Level::detail,
            (borrowed ? "borrowed from the outer run: " : "acquired ") + in_quotes(name) +
                " from " + location_of(name) +
                (fence ? ", fencing number " + std::to_string(*fence) : std::string()));
  return std::make_unique<HeldLock>(std::move(lease), spec, context_.page.leases.at(key));
}

Result<std::unique_ptr<HeldLock>> Acquisition::get(std::size_t key, Cancel cancel) {
  if (!backends_[key]) {
    auto backend = open_backend(context_.entry, context_.target,
                                after(Clock::now(), context_.target.connect_timeout), cancel);
    if (!backend) return backend.error();
    backends_[key] = std::move(*backend);
  }
  Backend& backend = *backends_[key];
  Request request = request_for(spec_.keys[key]);
  Wait wait;
  wait.until = waits_until();
  wait.cancel = cancel;
  wait.on_blocked = [this, key](const LockInfo& info) { tell_blocked(key, info); };
  wait.reached = reached_[key];
  wait.holds = key != order_.front();
  wait.once = !util::log_shows(Level::note);
  blocker_.reset();
  other_.reset();
  if (spec_.once) {
    if (auto ok = look_if_done(backend, wait); !ok) return ok.error();
    if (done_) return std::unique_ptr<HeldLock>();
  }
  auto borrowed = reenter(backend, request, wait, context_.target.connect_timeout);
  if (!borrowed) return borrowed.error();
  if (*borrowed && context_.owner.kind == Owner::Kind::acquire) {
    return Error{Errc::conflict, in_quotes(spec_.keys[key]) +
                                     " is held by the dlock run around this script: leave acquire "
                                     "out, which would wait for ever, or take another key"};
  }
  if (*borrowed && spec_.once) {
    return Error{Errc::conflict,
                 in_quotes(spec_.keys[key]) +
                     " is held by a dlock that has started this one, and dlock once "
                     "needs the lock for itself; take another key"};
  }
  if (*borrowed) return take(key, std::move(*borrowed), true);
  return wait_for(key, std::move(request), wait);
}

// A grant that is answered too late is given back, and requested again as after an outage.
Result<std::unique_ptr<HeldLock>> Acquisition::wait_for(std::size_t key, Request request,
                                                        Wait& wait) {
  Backend& backend = *backends_[key];
  Patience patience(wait, context_.target.connect_timeout, spec_.keys[key]);
  for (;;) {
    wait.reached = reached_[key];
    auto lease = backend.acquire(request, wait);
    if (!lease && spec_.once) look_again_if_busy(backend, lease.error());
    if (done_) return std::unique_ptr<HeldLock>();
    if (!lease) return lease.error();
    if (reached_[key]) patience.answered();
    auto lock = take(key, std::move(*lease), false);
    if (lock) {
      patience.recovered();
      return lock;
    }
    if (const auto again = patience.pause(lock.error()); !again) return again.error();
    request.owner.id = util::random_id();  // an id is for one grant
  }
}

MarkName Acquisition::mark_name() const {
  return {spec_.keys.front(), spec_.once->completion.period};
}

Result<void> Acquisition::note(Result<std::optional<Mark>> found) {
  if (!found) return found.error();
  done_ = std::move(*found);
  if (done_) other_ = done_->owner;
  return {};
}

Result<void> Acquisition::look(Backend& backend, Deadline deadline) {
  return note(backend.find_mark(mark_name(), deadline));
}

Result<void> Acquisition::look_if_done(Backend& backend, const Wait& wait) {
  Patience patience(wait, context_.target.connect_timeout, spec_.keys.front());
  for (;;) {
    const auto looked = look(backend, patience.call_until());
    if (looked) {
      patience.recovered();
      return {};
    }
    if (const auto again = patience.pause(looked.error()); !again) return again.error();
  }
}

// The holder may only be checking whether the job is done, as this run would.
void Acquisition::look_again_if_busy(Backend& backend, const Error& error) {
  if (error.code == Errc::busy) (void)look(backend, after(Clock::now(), kFarewell));
}

Result<void> Acquisition::look_under_lock(HeldLock& lock) {
  Backend& backend = *backends_.front();
  const Deadline deadline = std::min(after(Clock::now(), context_.target.connect_timeout),
                                     Margins{kill_after()}.term_at(lock.lease_end()));
  auto looked = note(lock.find_mark(backend, mark_name(), deadline));
  if (looked && !done_) looked = backend.prepare_marks(spec_.keys.front(), deadline);
  if (looked || looked.error().code != Errc::unreachable) return looked;
  Error error = looked.error();
  error.message = "cannot tell whether " + in_quotes(spec_.keys.front()) +
                  " is done, or remember it: " + error.message;
  return error;
}

// For the event log: which key is waited for from now on.
void Acquisition::note_asked(std::optional<std::size_t> wanted) {
  const Deadline now = Clock::now();
  for (std::size_t i = 0; i < spec_.keys.size(); ++i) {
    KeyOnPage& key = context_.page.keys.at(i);
    if (const Deadline::rep since = key.asked_at.exchange(0)) {
      key.waited +=
          std::chrono::duration_cast<Millis>(now - Deadline(Deadline::duration(since))).count();
    }
  }
  if (wanted) context_.page.keys.at(*wanted).asked_at = now.time_since_epoch().count();
}

// Acquires one after the other.  `stop`: readable when is_stopped(), or when a held lock is lost.
Result<void> Acquisition::get_all(HeldLocks& held, const Fd& stop) {
  kill_after_.reset();
  for (const std::size_t key : order_) {
    wanted_ = key;
    note_asked(key);
    auto lock = get(key, Cancel(stop.get()));
    if (!lock) return lock.error();
    if (done_) return {};
    note_asked(std::nullopt);
    held.add(std::move(*lock));
    if (key == order_.back()) return {};
    if (auto why = held.all().back()->start_renewing()) return *why;
    if (!add_to(stop, held.all().back()->lost_fd())) return cannot_watch();
  }
  return {};
}

Result<HeldLocks> Acquisition::run() {
  // Only the backends on servers use client libraries.
  if (context_.entry.traits.reach != Traits::Reach::host) context_.inherited.note_dispositions();
  for (;;) {
    HeldLocks held;
    const Fd stop(epoll_create1(EPOLL_CLOEXEC));
    if (!add_to(stop, link_.fd()) || (signals_ >= 0 && !add_to(stop, signals_))) {
      return cannot_watch();
    }
    auto got = get_all(held, stop);
    if (got && spec_.once && !done_) got = look_under_lock(*held.all().front());
    if (done_) {
      (void)held.release(Cancel(link_.fd()));
      return HeldLocks();
    }
    const auto losses = held.check(Clock::now());
    if (got && losses.empty()) return held;
    const bool was_lost = !losses.empty() && (got || got.error().code == Errc::cancelled);
    const bool was_stopped = is_stopped();
    const bool again = was_lost && !was_stopped && !time_is_up();
    const Error why = was_stopped ? Error{Errc::cancelled, "stopped"}
                      : was_lost
                          ? with_origin(lost_while_waiting(losses.front(), again), context_.target)
                          : explain(got.error());
    // The next try would wait for what is left of a lost lease.
    (void)held.release(Cancel(link_.fd()), again ? waits_until() : after(Clock::now(), kFarewell));
    if (!again) return why;
    util::log(Level::warning, why.message);
    for (auto& backend : backends_) backend.reset();  // a hung renewal may still use one
    util::wait_readable(stop.get(), after(Clock::now(), util::jitter(kBeforeStartingAgain)));
  }
}

}  // namespace dlock
