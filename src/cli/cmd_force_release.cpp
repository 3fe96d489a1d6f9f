// What is broken is what was shown: the service compares the ids, so that whoever got the lock
// while the operator was thinking keeps it.
#include "cli/cmd_force_release.hpp"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>

#include "cli/lock_service.hpp"
#include "cli/print_text.hpp"
#include "cli/refusal.hpp"
#include "cli/values.hpp"
#include "core/secret.hpp"
#include "engine/describe.hpp"
#include "util/duration.hpp"
#include "util/fd.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

using util::in_quotes;
using util::Level;
using util::log;

// For the holder to read, and behind "by" in what the backends make of it.
std::string who_and_why(const Settings& settings) {
  std::string out = this_process_in_words();
  const Setting* reason = settings.find("reason");
  if (reason != nullptr && !to_note(*reason).empty()) out += ": " + reason->text();
  return out;
}

std::string in_words(const LockInfo::Holder& holder) {
  return held_in_words(holder_in_words(holder), holder.held, std::nullopt);
}

// Takes out of `lock` whom the command line does not mean; says so and returns the status if that
// leaves nobody.
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
                ": not by a grant whose id begins with " + shown_word(id->text()));
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
              ", of whose grant there is no record to compare: it is free once that process "
              "has ended");
  }
  return no(held + ", not through dlock, which cannot break it: " +
            (first.owner.pid > 0        ? "it is free once that process has ended"
             : first.foreign == "flock" ? "it is free once nobody has its lock file open"
                                        : "take away what stands there with the tools of the "
                                          "service"));
}

// The literal word, and nothing else, is a yes.
bool confirmed(const LockInfo& lock, const std::string& location, Traits::EndsOn ends_on) {
  const auto rows = holder_rows(lock);
  const std::string one = rows.size() == 1 ? "it" : "all " + std::to_string(rows.size());
  const std::string question =
      in_quotes(lock.key) + " in " + location + " is held by\n\n" +
      print_text(tabulate<LockRow>(holder_columns(rows), rows), terminal_width(STDERR_FILENO)) +
      (ends_on == Traits::EndsOn::process_exit
           ? "\nThe lock is free when its holder has ended its command."
           : "\nWhoever waits for the lock gets it at once, while its holder is still ending its\n"
             "command.") +
      " Type \"yes\" to break " + one + ": ";
  util::write_all(STDERR_FILENO, question);
  std::string answer;
  if (!std::getline(std::cin, answer)) util::write_all(STDERR_FILENO, "\n");
  return answer == "yes";
}

// Where only the holder can let go, it may still be about to.
std::string what_it_does(const LockInfo::Holder& holder, const std::string& key,
                         const LockService& service, Backend& backend) {
  if (holder.foreign) return "; that program is not told, its job may go on";
  if (holder.owner.lease) return "; its script is not told before it calls dlock renew";
  std::string ends = std::string("; its dlock ends the ") +
                     (holder.owner.kind == Owner::Kind::acquire ? "script" : "command") + " now";
  if (service.traits().ends_on != Traits::EndsOn::process_exit) return ends;
  const auto now = backend.inspect(key, service.patience());
  const bool holds = now && std::any_of(now.value().holders.begin(), now.value().holders.end(),
                                        [&](const LockInfo::Holder& one) {
                                          return one.owner.id == holder.owner.id;
                                        });
  return holds ? ends + ", and holds the lock until that has ended" : "; its dlock has let go";
}

int break_all(const LockInfo& lock, const LockService& service, Backend& backend) {
  const std::string why = who_and_why(service.settings());
  int status = exit_status::kNo;
  std::optional<int> error;  // does not spare the others
  for (const LockInfo::Holder& holder : lock.holders) {
    const auto broken = backend.force_release(lock.key, holder.owner.id, why, service.patience());
    if (!broken) {
      error = report(broken.error());
      continue;
    }
    const std::string whose = in_quotes(lock.key) + ", " + in_words(holder);
    if (!broken.value()) {
      log(Level::error, "not broken: " + whose + ", is not held by that grant any more");
      continue;
    }
    status = 0;
    log(Level::note, "broke " + whose + what_it_does(holder, lock.key, service, backend));
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
  if (!backend) return report(backend.error());
  auto found = backend.value()->inspect(key, service.patience());
  if (!found) return report(found.error());
  LockInfo& lock = *found;
  if (lock.holders.empty()) {
    return no(in_quotes(key) + " is free in " + backend.value()->location_of(key) +
              ": there is nothing to break");
  }
  if (const auto status = choose(lock, service)) return *status;
  if (!ask) return break_all(lock, service, *backend.value());
  if (!confirmed(lock, backend.value()->location_of(key), service.traits().ends_on))
    return no(in_quotes(key) + " was not broken");
  // While the operator was thinking the connection may have been closed.
  const auto again = service.open();
  if (!again) return report(again.error());
  return break_all(lock, service, *again.value());
}

}  // namespace dlock::cli
