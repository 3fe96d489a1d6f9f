// Only the holders that were shown are broken: the service compares the lock ids.  A holder that
// acquired the lock after the question was asked keeps it.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>

#include "cli/cmd.hpp"
#include "cli/lock_form.hpp"
#include "cli/lock_service.hpp"
#include "cli/print_text.hpp"
#include "cli/refusal.hpp"
#include "cli/values.hpp"
#include "core/secret.hpp"
#include "engine/describe.hpp"
#include "util/duration.hpp"
#include "util/fd.hpp"
#include "util/host.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

using util::in_quotes;
using util::Level;
using util::log;

// The holder's message puts this text behind "by".
std::string who_and_why(const Settings& settings) {
  std::string out = this_process_in_words();
  const Setting* reason = settings.find("reason");
  if (reason != nullptr && !to_note(*reason).empty()) out += ": " + reason->text();
  return out;
}

// "held 3h58m by app on web-3.example.net, pid 4121 (deploy.sh)"
std::string in_words(const LockInfo::Holder& holder) {
  return (holder.held ? "held " + util::format_duration(*holder.held) : "held") + " by " +
         holder_in_words(holder);
}

// Removes the holders from `lock` that the command line does not mean.  If none is left, prints why
// and returns the exit status.
std::optional<int> choose(LockInfo& lock, const LockService& service) {
  const LockInfo all = lock;
  const std::string held =
      in_quotes(all.key) + " is " + in_words(all.holders.front()) +
      (all.holders.size() > 1 ? " and by " + std::to_string(all.holders.size() - 1) + " more" : "");
  if (const Setting* id = service.settings().find("id")) {
    std::erase_if(lock.holders,
                  [&](const auto& holder) { return !holder.owner.id.starts_with(to_text(*id)); });
    if (lock.holders.empty()) {
      return no(held + ", id " + in_quotes(short_id(all.holders.front().owner)) +
                ": it does not begin with " + shown_word(id->text()));
    }
    if (lock.holders.size() > 1) refuse(*id, "is how more than one id begins; give more of it");
  }
  if (const auto age = service.older_than()) {
    lock = with_older_holders(lock, *age);
    if (lock.holders.empty()) return no(held + ", no longer than " + util::format_duration(*age));
  }
  std::erase_if(lock.holders, [](const auto& holder) { return holder.owner.id.empty(); });
  if (!lock.holders.empty()) return std::nullopt;
  const LockInfo::Holder& first = all.holders.front();
  if (!first.foreign) {
    return no(held +
              ", of which there is no record to compare: it is free once that process has ended");
  }
  return no(held + ", not through dlock, which cannot break it: " +
            (first.foreign == "flock" ? "it is free once no process has its lock file open"
             : first.owner.pid > 0    ? "it is free once that process has ended"
                                      : "take away what stands there with the tools of the "
                                        "service"));
}

// `who` is the holder whose dlock ends the job.
std::string ends_its_job(const LockInfo::Holder& holder, const std::string& who) {
  const Owner& owner = holder.owner;
  if (holder.foreign) return "that program is not told: its job may go on";
  if (owner.ended) return "its command has ended already";
  if (owner.lease) return "its script is not told before it calls dlock renew";
  const std::string what = owner.kind == Owner::Kind::acquire
                               ? "the script of pid " + std::to_string(owner.pid)
                           : owner.command.empty() ? "the command"
                                                   : base_name(owner.command);
  return who + " ends " + what + " (SIGTERM, then SIGKILL)";
}

// `others` is the number of holders besides those in `lock`, which are to be broken.
std::string who_is_next(const LockInfo& lock, std::size_t others, const Traits& traits) {
  const bool any_runs = std::ranges::any_of(
      lock.holders, [](const auto& holder) { return !holder.owner.ended && !holder.foreign; });
  const bool after_it = traits.ends_on == Traits::EndsOn::process_exit && any_runs;
  const std::string when = after_it   ? " when that has ended"
                           : any_runs ? " at once, perhaps before that"
                                      : " at once";
  if (others > 0 && lock.mode != Mode::slots) {
    return "the lock stays held by " + std::to_string(others) +
           (others == 1 ? " other" : " others");
  }
  const std::string what = lock.mode == Mode::slots ? "a slot" : "the lock";
  if (!lock.waiters || lock.waiters->empty()) {
    return what + " is free" + (after_it ? when : " at once");
  }
  const std::string who = traits.order == Traits::Order::fifo
                              ? holder_in_brief({.owner = lock.waiters->front().owner})
                              : "one of those that wait";
  return who + " acquires " + what + when;
}

// Only the literal word "yes" is an assent.
bool confirmed(const LockInfo& lock, const LockInfo& all, const LockService& service,
               const Backend& backend) {
  const std::size_t count = lock.holders.size();
  const std::size_t others = all.holders.size() - count;
  std::string question = lock_form(all, {}, service, backend, terminal_width(STDERR_FILENO)) +
                         "\nIf you break this lock" +
                         (others > 0 ? " for " + std::to_string(count) + " of its holders" : "") +
                         ":\n";
  for (const LockInfo::Holder& holder : lock.holders) {
    const std::string who =
        all.holders.size() == 1 ? util::short_host(holder.owner.host) : holder_in_brief(holder);
    question += "  - " + util::printable(ends_its_job(holder, who)) + '\n';
  }
  question += "  - " + util::printable(who_is_next(lock, others, service.traits())) + '\n';
  if (count == 1) question += how_to_end(lock.holders.front());
  question += "Type \"yes\" to break " + (count == 1 ? "it" : "all " + std::to_string(count)) +
              ", anything else to leave it: ";
  util::write_all(STDERR_FILENO, question);
  std::string answer;
  if (!std::getline(std::cin, answer)) util::write_all(STDERR_FILENO, "\n");
  if (answer == "yes") return true;
  log(Level::error,
      "not broken: the answer was " + in_quotes(answer) + ", and only \"yes\" breaks the lock");
  return false;
}

bool is_held_by(const LockInfo& lock, const std::string& id) {
  return std::ranges::any_of(lock.holders, [&](const auto& one) { return one.owner.id == id; });
}

// The state of the lock after the break.  A waiter needs a moment to acquire a free lock.  If only
// the holder can release the lock, it may not have done so yet.
std::string what_became_of(const LockInfo::Holder& holder, const LockInfo& lock,
                           const LockService& service, Backend& backend) {
  constexpr Millis kAMoment{1'000};
  constexpr Millis kPause{50};
  const Deadline until = after(Clock::now(), kAMoment);
  const bool somebody_waits = lock.waiters && !lock.waiters->empty();
  for (;;) {
    auto now = backend.inspect(lock.key, service.patience());
    if (!now) return "";
    const bool is_over = Clock::now() >= until;
    if (is_held_by(*now, holder.owner.id)) {
      if (is_over || service.traits().ends_on == Traits::EndsOn::process_exit) {
        return "; its dlock ends the command now, and holds the lock until that has ended";
      }
    } else if (!now->holders.empty()) {
      return "; now held by " + holders_in_brief(*now);
    } else if (!somebody_waits || is_over) {
      return "; now free";
    }
    util::wait_readable(-1, after(Clock::now(), kPause));
  }
}

int break_all(const LockInfo& lock, const LockService& service, Backend& backend) {
  const std::string why = who_and_why(service.settings());
  int status = exit_status::kNo;
  std::optional<int> error;  // does not spare the others
  for (const LockInfo::Holder& holder : lock.holders) {
    const auto broken = backend.force_release(lock.key, holder.owner.id, {why}, service.patience());
    if (!broken) {
      error = service.report(broken.error());
      continue;
    }
    const std::string whose = in_quotes(lock.key) + " (" + in_words(holder) + ')';
    if (!broken.value()) {
      log(Level::error, "not broken: " + whose + " was released" +
                            what_became_of(holder, lock, service, backend));
      continue;
    }
    status = 0;
    const bool is_told = !holder.foreign && !holder.owner.lease;
    log(Level::note, "broke " + whose + (is_told ? "" : "; " + ends_its_job(holder, "")) +
                         what_became_of(holder, lock, service, backend));
  }
  return error.value_or(status);
}

}  // namespace

int cmd_force_release(const Invocation& invocation, std::span<const BackendEntry> backends) {
  const LockService service(invocation, backends);
  const std::string& key = key_operand(invocation);
  (void)who_and_why(service.settings());  // refuses a bad reason before anything is asked
  const bool ask = effective(service.settings(), flag("yes")) == nullptr;
  if (ask && isatty(STDIN_FILENO) == 0) {
    refuse_usage("there is no terminal to ask on whether to break " + in_quotes(key) +
                 "; --yes breaks it without a question");
  }
  const auto backend = service.open();
  if (!backend) return service.report(backend.error());
  auto found = backend.value()->inspect(key, service.patience());
  if (!found) return service.report(found.error());
  LockInfo& lock = *found;
  if (lock.holders.empty()) {
    return no(in_quotes(key) + " is free in " + service.place(backend.value()->location_of(key)) +
              ": there is nothing to break");
  }
  const LockInfo all = lock;
  if (const auto status = choose(lock, service)) return *status;
  if (!ask) return break_all(lock, service, *backend.value());
  if (!confirmed(lock, all, service, *backend.value())) return exit_status::kNo;
  // The server may have closed the connection while the operator was thinking.
  const auto again = service.open();
  if (!again) return service.report(again.error());
  return break_all(lock, service, *again.value());
}

}  // namespace dlock::cli
