#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "cli/cmd.hpp"
#include "cli/layers.hpp"
#include "cli/print_json.hpp"
#include "cli/print_text.hpp"
#include "cli/settings_in_force.hpp"
#include "cli/source.hpp"
#include "cli/try_lock.hpp"
#include "cli/values.hpp"
#include "engine/exit_status.hpp"
#include "engine/run.hpp"
#include "util/duration.hpp"
#include "util/fd.hpp"
#include "util/host.hpp"
#include "util/log.hpp"
#include "util/random_id.hpp"

namespace dlock::cli {
namespace {

// The servers are looked at, a lock is tried, then released, and its traces are removed: so long
// each.
constexpr Millis kPhase{3'500};

// SIGINT, SIGTERM, SIGHUP and SIGQUIT end the tries; nothing is left behind then, either.
class Interrupt {
 public:
  Interrupt() {
    sigemptyset(&signals_);
    for (const int sig : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
      struct sigaction action {};
      sigaction(sig, nullptr, &action);
      if (action.sa_handler != SIG_IGN) sigaddset(&signals_, sig);  // by nohup
    }
    sigprocmask(SIG_BLOCK, &signals_, nullptr);
    fd_.reset(signalfd(-1, &signals_, SFD_NONBLOCK | SFD_CLOEXEC));
  }
  Cancel cancel() const { return Cancel(fd_.get()); }
  /// From now on, signals end this process.  Returns the exit status of the one that has come; 0:
  /// none has.
  int end() const {
    signalfd_siginfo info{};
    const bool has_come = ::read(fd_.get(), &info, sizeof info) == sizeof info;
    sigprocmask(SIG_UNBLOCK, &signals_, nullptr);
    return has_come ? 128 + static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t signals_{};
  Fd fd_;
};

void add(Findings& out, Findings more) { std::ranges::move(more, std::back_inserter(out)); }

// How long a server may be silent.  A lease is renewed every third of its TTL.
void add_outage(const Traits& traits, Millis ttl, Findings& out) {
  if (traits.ends_on == Traits::EndsOn::process_exit) return;
  const Millis survived = ttl * 2 / 3 - default_kill_after(ttl);
  out.push_back({.name = "outage",
                 .seen = "TTL " + util::format_duration(ttl) + ": a job survives an outage of " +
                         util::format_duration(survived) + "; a longer one can end it"});
}

// `key`: of the lock that is tried; "": none is.
Findings examine(const BackendEntry& entry, const Target& target, Millis ttl,
                 const std::string& key, Cancel cancel) {
  Findings out;
  auto examination = entry.examine(target, ttl);
  if (!examination) {
    out.push_back(cannot_look("setting", "", examination.error()));
    return out;
  }
  Examination& its = **examination;
  out = its.look(after(Clock::now(), std::min(kPhase, target.connect_timeout)), cancel);
  if (its.may_try()) add_outage(entry.traits, its.granted_ttl().value_or(ttl), out);
  if (key.empty() || !its.may_try() || cancel.requested()) return out;
  const bool with_marks = entry.traits.remembers && its.may_try_marks();
  std::vector<std::string> owners;
  Findings tried;
  try {
    tried = try_lock(entry, target, key, with_marks, its.rights(), after(Clock::now(), kPhase),
                     cancel, owners);
  } catch (const std::exception& error) {  // no thread, no memory: what was made is to be removed
    tried.push_back(cannot_look("try-acquire", "", {Errc::unreachable, error.what()}));
  }
  const bool is_well =
      std::ranges::none_of(tried, [](const Finding& one) { return one.error.has_value(); });
  add(out, std::move(tried));
  const auto removed = its.remove_traces(key, owners, after(Clock::now(), kPhase));
  if (!removed && is_well) {
    out.push_back(cannot_look("try-clean-up", "", removed.error()));
    out.back().why = "The lock " + key + " ends within 10 s; what else is stored of it, in a week.";
  }
  return out;
}

// All at the same time, each with a key of its own: two may be on one server.  A thread that hangs,
// in a file system that is silent, is not waited for.  Of what the backends print, the findings say
// the same, and what to do.
bool examine_all(std::vector<Patient>& patients, bool is_read_only, Cancel cancel) {
  std::vector<std::string> printed;
  const util::LogInto kept(printed);
  const std::string key = "dlock-doctor-" + util::host_name() + '-' + std::to_string(getpid()) +
                          '-' + util::random_id().substr(0, 4);
  std::vector<std::pair<Findings*, std::future<Findings>>> pending;
  for (Patient& patient : patients) {
    if (patient.selection.entry == nullptr) continue;
    const Target& target = patient.selection.target;
    for (const Target& one : target.shards.empty() ? std::vector{target} : target.shards) {
      const std::string its = key + (pending.empty() ? "" : '-' + std::to_string(pending.size()));
      const auto task = std::make_shared<std::packaged_task<Findings()>>(
          [&entry = *patient.selection.entry, one, ttl = patient.ttl, its = is_read_only ? "" : its,
           cancel] { return examine(entry, one, ttl, its, cancel); });
      pending.emplace_back(&patient.diagnosis.findings, task->get_future());
      try {
        std::thread([task] { (*task)(); }).detach();
      } catch (const std::system_error&) {  // there is no thread
        (*task)();
      }
    }
  }
  const Deadline until = after(Clock::now(), 4 * kPhase);
  bool all_done = true;
  for (auto& [out, findings] : pending) {
    const bool is_done = findings.wait_until(until) == std::future_status::ready;
    all_done = all_done && is_done;
    try {
      add(*out, is_done
                    ? findings.get()
                    : Findings{cannot_look("outage", "", {Errc::unreachable, "no end after 14s"})});
    } catch (const std::exception& error) {
      out->push_back(cannot_look("outage", "", {Errc::unreachable, error.what()}));
    }
  }
  return all_done;
}

}  // namespace

int cmd_doctor(const Invocation& invocation, std::span<const BackendEntry> backends) {
  const Settings settings = given_settings(invocation);
  set_log_from(settings);
  const bool is_json = effective(settings, flag("json")) != nullptr;
  const bool is_brief = effective(settings, flag("quiet")) != nullptr;
  std::vector<Patient> patients;
  for (const Settings& its : each_backend(invocation, settings)) {
    patients.push_back(find_patient(invocation, its, backends));
  }
  const Interrupt interrupt;
  const bool all_done = examine_all(patients, invocation.has("read-only"), interrupt.cancel());
  const int interrupted = interrupt.end();

  const std::size_t width = terminal_width(STDOUT_FILENO);
  std::string text = is_json || is_brief ? "" : this_system(backend_names(backends, true)) + "\n\n";
  std::vector<Object> objects;
  int status = 0;
  for (const Patient& patient : patients) {
    const Diagnosis& diagnosis = patient.diagnosis;
    if (&patient != &patients.front()) text += '\n';
    if (is_brief && invocation.has("all")) text += diagnosis.backend + '\n';
    text += diagnosis.text(width, is_brief);
    objects.push_back(diagnosis.object());
    const int its = diagnosis.exit_status(invocation.has("strict"));
    if (status == 0 || its == exit_status::kNo) status = its;
  }
  if (is_json) text = invocation.has("all") ? print_json(objects) : print_json(objects.front());
  const int wrote = write_stdout(text);
  if (interrupted != 0) status = interrupted;
  if (wrote != 0) status = wrote;
  if (!all_done) ::_exit(status);
  return status;
}

}  // namespace dlock::cli
