#include "cli/try_lock.hpp"

#include <unistd.h>

#include <algorithm>
#include <future>
#include <thread>

#include "core/sharded_backend.hpp"
#include "util/host.hpp"
#include "util/random_id.hpp"

namespace dlock::cli {
namespace {

constexpr Millis kTtl{10'000};  // so long the lock stays if this process is killed
constexpr Millis kPause{1};
constexpr Millis kReleases{3'500};
constexpr Millis kLists{1'000};
constexpr Millis kQueues{50};   // so long a waiter that was told who is in the way has to sit down
constexpr Millis kCalled{250};  // a waiter that takes longer was not called, but asked again

using Held = Result<std::unique_ptr<Lease>>;

class Trial {
 public:
  Trial(const BackendEntry& entry, const Target& target, std::string key, std::string rights,
        Deadline deadline, Cancel cancel, std::vector<std::string>& owners)
      : entry_(entry),
        target_(target),
        key_(std::move(key)),
        rights_(std::move(rights)),
        deadline_(deadline),
        cancel_(cancel),
        owners_(owners) {}

  Findings run(bool with_marks);

 private:
  Result<void> run_all(bool with_marks);
  Result<void> use(Backend& backend, Lease& lease);
  Result<void> wake(Backend& backend, Lease& lease, Held& next);
  Result<void> break_lock(Backend& backend, Lease& lease);
  Result<void> mark(Backend& backend);

  Result<std::unique_ptr<Backend>> open() const {
    return open_backend(entry_, target_, deadline_, cancel_);
  }
  Held acquire(Backend& backend, std::function<void(const LockInfo&)> on_blocked = {});
  Result<void> release(Lease& lease) const {
    return lease.release(after(Clock::now(), std::min(target_.connect_timeout, kReleases)),
                         Cancel());
  }

  // Takes the time of `step`, and notes what came of it.
  template <class Step>
  auto note(std::string_view name, Step step) {
    const Deadline start = Clock::now();
    auto result = step();
    findings_.push_back(result ? Finding{.name = name, .seen = in_ms(Clock::now() - start)}
                               : failed(name, result.error()));
    return result;
  }
  Finding failed(std::string_view name, const Error& error) const;

  const BackendEntry& entry_;
  const Target& target_;
  const std::string key_;
  const std::string rights_;
  const Deadline deadline_;
  const Cancel cancel_;
  std::vector<std::string>& owners_;
  Findings findings_;
};

Held Trial::acquire(Backend& backend, std::function<void(const LockInfo&)> on_blocked) {
  Request request{.key = key_, .ttl = kTtl};
  request.owner = {.id = util::random_id(),
                   .host = util::host_name(),
                   .pid = getpid(),
                   .user = util::user_name(),
                   .command = "dlock doctor"};
  owners_.push_back(request.owner.id);
  Wait wait{.until = std::min(deadline_, after(Clock::now(), target_.connect_timeout)),
            .cancel = cancel_};
  wait.on_blocked = std::move(on_blocked);
  return backend.acquire(request, wait);
}

Finding Trial::failed(std::string_view name, const Error& error) const {
  Finding out = cannot_look(name, "", error);
  if (error.code == Errc::denied) out.fix = rights_;
  if (error.code == Errc::lost) {
    out.why = "Several servers answer to this name, or it forgets locks: two jobs can run at once.";
    out.fix = "name one server in the URL";
    out.error.reset();
  } else if (Clock::now() >= deadline_) {
    out.level = Severity::warn;
    out.why = "dlock doctor had no more time; a run waits for as long as --connect-timeout says.";
  }
  out.why += " The tries after this one are left out.";
  return out;
}

Result<void> not_seen(const std::string& what) {
  return Error{Errc::lost, what + " does not show the lock that is held"};
}

Result<void> Trial::use(Backend& backend, Lease& lease) {
  const auto is_ours = [&](const LockInfo& lock) {
    return lock.key == key_ && std::ranges::any_of(lock.holders, [&](const auto& holder) {
             return holder.owner.id == lease.owner_id();
           });
  };
  if (auto ok = note("try-renew", [&] { return lease.renew(deadline_, cancel_); }); !ok) return ok;
  auto shown = note("try-show", [&]() -> Result<void> {
    auto lock = backend.inspect(key_, deadline_);
    if (!lock) return lock.error();
    return is_ours(*lock) ? Result<void>() : not_seen("dlock show");
  });
  if (!shown) return shown;
  const Deadline until = std::min(deadline_, after(Clock::now(), kLists));
  auto listed = note("try-list", [&]() -> Result<void> {
    auto locks = backend.list(key_, until);
    if (!locks) return locks.error();
    return std::ranges::any_of(*locks, is_ours) ? Result<void>() : not_seen("dlock list");
  });
  if (listed || Clock::now() < until) return listed;
  findings_.back() = {.name = "try-list",
                      .level = Severity::note,
                      .seen = "not done in 1s",
                      .why = "dlock list looks at all that is stored there, also by others.",
                      .fix = "give locks a server, or a database, of their own"};
  return {};
}

// Releases the lock while somebody waits for it, who then has it.
Result<void> Trial::wake(Backend& backend, Lease& lease, Held& next) {
  std::promise<void> blocked;
  auto waiting = std::async(std::launch::async, [&, is_told = false]() mutable {
    return acquire(backend, [&](const LockInfo&) {
      if (!std::exchange(is_told, true)) blocked.set_value();
    });
  });
  blocked.get_future().wait_until(std::min(deadline_, after(Clock::now(), Millis{1'000})));
  std::this_thread::sleep_for(kQueues);
  const bool is_early = waiting.wait_for(Millis{0}) == std::future_status::ready;
  const Deadline start = Clock::now();
  const auto released = note("try-release", [&] { return release(lease); });
  const Deadline free = Clock::now();
  const auto woken = note("try-wake-a-waiter", [&]() -> Result<void> {
    next = waiting.get();
    if (next && is_early) return Error{Errc::lost, "two holders at once"};
    return next ? Result<void>() : next.error();
  });
  if (woken && Clock::now() - free > kCalled + 3 * (free - start)) {
    findings_.back().level = Severity::warn;
    findings_.back().why = "Waiters are not called when the lock is free: they ask again.";
    findings_.back().fix = rights_;
  }
  return released ? woken : released;
}

// Of the backend file, the call returns when the holder has given the lock up.
Result<void> Trial::break_lock(Backend& backend, Lease& lease) {
  owners_.push_back(lease.owner_id());
  return note("try-force-release", [&]() -> Result<void> {
    auto breaking = std::async(std::launch::async, [&] {
      return backend.force_release(key_, lease.owner_id(), {"dlock doctor"}, deadline_);
    });
    while (breaking.wait_for(kPause) != std::future_status::ready &&
           lease.renew(deadline_, cancel_)) {
    }
    (void)release(lease);
    auto broken = breaking.get();
    if (!broken) return broken.error();
    return broken.value() ? Result<void>() : not_seen("dlock force-release");
  });
}

Result<void> Trial::mark(Backend& backend) {
  return note("try-done-mark", [&]() -> Result<void> {
    Held held = acquire(backend);
    if (!held) return held.error();
    if (auto ok = (*held)->complete({"", kTtl}, deadline_, cancel_); !ok) {
      (void)release(**held);
      return ok;
    }
    auto found = backend.find_mark({key_, ""}, deadline_);
    if (!found) return found.error();
    auto gone = backend.forget_mark({key_, ""}, deadline_);
    return gone ? Result<void>() : gone.error();
  });
}

Result<void> Trial::run_all(bool with_marks) {
  auto ours = open();
  auto others = open();
  if (!ours || !others)
    return note("try-acquire", [&] { return !ours ? std::move(ours) : std::move(others); }).error();
  Held held = note("try-acquire", [&] { return acquire(**ours); });
  if (!held) return held.error();
  if (auto ok = use(**ours, **held); !ok) {
    (void)release(**held);
    return ok;
  }
  Held next = Error{Errc::cancelled, ""};
  auto woken = wake(**others, **held, next);
  if (!woken) {
    if (next) (void)release(**next);
    return woken;
  }
  if (auto ok = break_lock(**ours, **next); !ok || !with_marks) return ok;
  return mark(**ours);
}

Findings Trial::run(bool with_marks) {
  (void)run_all(with_marks);
  std::erase_if(findings_, [](const Finding& one) { return one.error == Errc::cancelled; });
  return std::move(findings_);
}

}  // namespace

Findings try_lock(const BackendEntry& entry, const Target& target, const std::string& key,
                  bool with_marks, const std::string& rights, Deadline deadline, Cancel cancel,
                  std::vector<std::string>& owners) {
  return Trial(entry, target, key, rights, deadline, cancel, owners).run(with_marks);
}

}  // namespace dlock::cli
