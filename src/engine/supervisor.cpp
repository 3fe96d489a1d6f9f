// From the grant on everything happens in one loop, watch().  It looks at the clock first, so that
// after a pause of the machine the first act is to compare it with the end of the lease.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/acquisition.hpp"
#include "engine/describe.hpp"
#include "engine/grant.hpp"
#include "engine/job.hpp"
#include "engine/processes.hpp"
#include "engine/run_end.hpp"
#include "engine/run_events.hpp"
#include "engine/supervision.hpp"
#include "reentry/outer_run.hpp"
#include "reentry/protocol.hpp"
#include "util/duration.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"
#include "util/process_title.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

using util::in_quotes;
using util::Level;

constexpr int kMostRounds = 64;  // of answers to nested runs, before any other work

// The supervisor is the command's parent, so `kill $PPID` in the job reaches it.  SIGTERM means the
// same in each process of dlock, unless it was ignored when dlock started.
sigset_t term_and(int more) {
  sigset_t out;
  sigemptyset(&out);
  if (!ignores(SIGTERM)) sigaddset(&out, SIGTERM);
  if (more != 0) sigaddset(&out, more);
  return out;
}

// Returns a new signalfd, or `old`, which reports these signals from now on.
int signal_fd(int old, const sigset_t& signals) {
  return signalfd(old, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

// SIGINT or SIGQUIT if it is pending here and was not ignored when dlock started; otherwise 0.
int pending_interrupt() {
  sigset_t pending;
  sigpending(&pending);
  for (const int sig : {SIGINT, SIGQUIT}) {
    if (sigismember(&pending, sig) == 1 && !ignores(sig)) return sig;
  }
  return 0;
}

// The locks and the one command of a run.
class Supervisor {
 public:
  Supervisor(const RunContext& context, SupervisorEnd link)
      : context_(context), spec_(context.spec), link_(std::move(link)) {}

  [[noreturn]] void run();

 private:
  std::optional<Error> acquire();

  void watch();
  bool finished(Deadline now);
  void look_at_clock(Deadline now);
  void read_link();
  void read_signals();
  void on_signal(int sig, bool from_terminal);
  std::vector<HeldLockOffer> offers() const;
  void serve_nested_runs();
  std::vector<std::pair<std::string, std::string>> environment() const;
  void start_command();
  void fail(const char* what);
  Deadline launcher_answers_by() const;
  Deadline max_hold_ends_at() const;
  void lose(const HeldLocks::Loss& loss, Deadline now);
  std::string keys() const { return keys_in_words(spec_.keys); }

  Outcome run_under_lock();
  Outcome outcome() const { return outcome_of(context_, job_, end_); }
  void release(Outcome& outcome);
  void complete(Outcome& outcome);
  Deadline held_long_enough_at() const { return after(granted_at_, spec_.min_hold); }
  std::vector<HeldLocks::Loss> expire_when_held_long_enough();
  void note_losses(const std::vector<HeldLocks::Loss>& losses, Outcome& outcome) const;
  [[noreturn]] void stay_behind();

  const RunContext& context_;
  const RunSpec& spec_;
  SupervisorEnd link_;
  Margins margins_{spec_.kill_after};
  Fd signals_{signal_fd(-1, term_and(0))};  // and SIGCHLD, from the grant on

  Acquisition acquisition_{context_, link_, signals_.get()};
  HeldLocks locks_;               // none yet, or all
  Deadline granted_at_ = kNever;  // since when all are held
  OuterRun outer_run_;            // answers nested runs
  Job job_{spec_.leftovers, context_.tree};
  StuckReport stuck_;
  bool leftovers_named_ = false;
  RunEnd end_;
  bool staying_ = false;  // the launcher has returned
};

std::optional<Error> Supervisor::acquire() {
  auto held = acquisition_.run();
  if (!held) return held.error();
  if (acquisition_.done()) return std::nullopt;
  locks_ = std::move(*held);
  (void)signal_fd(signals_.get(), term_and(SIGCHLD));
  granted_at_ = Clock::now();
  margins_.kill_after = acquisition_.kill_after();
  note_grant(context_, locks_, margins_);
  context_.page.guarded = spec_.on_lost != OnLost::ignore;
  if (!locks_.send_lock_fds(link_) || !link_.send({ToLauncher::Kind::granted})) {
    fail("cannot pass a descriptor to the other process of dlock");
  }
  log_acquired(context_, locks_);
  return std::nullopt;
}

void Supervisor::fail(const char* what) {
  end_.failure = Outcome{.name = "error", .exit_status = exit_status::kInternal};
  end_.failure->reason = std::string(what) + ": " + strerror(errno);
}

void Supervisor::lose(const HeldLocks::Loss& loss, Deadline now) {
  outer_run_.recall_all_but(offers());
  const bool is_first = !end_.loss;
  if (is_first) end_.loss = loss;
  if (job_.started() && !staying_) {
    return end_after_loss(context_, loss, is_first, margins_, job_, now);
  }
  note_loss(context_, loss.key);
  if (staying_) return;  // nested runs end by themselves; the others may go on
  util::log(Level::error, "lost " + in_quotes(loss.key) + ": " + loss.error.message +
                              "; not starting " + spec_.argv.front());
}

void Supervisor::look_at_clock(Deadline now) {
  for (const auto& loss : locks_.check(now)) lose(loss, now);
  if (now >= max_hold_ends_at()) {
    end_.max_hold_over = true;
    outer_run_.recall_all_but({});
    if (staying_) return;
    const int signal = job_.end(after(now, margins_.kill_after), now);
    if (job_.started()) log_ending(context_, signal, "max-hold");
    util::log(Level::warning, "--max-hold " + util::format_duration(*spec_.max_hold) +
                                  " is over; ending " + spec_.argv.front());
  }
}

std::vector<std::pair<std::string, std::string>> Supervisor::environment() const {
  std::vector<Grant> grants;
  for (const std::string& key : spec_.keys) {
    const HeldLock& lock = *locks_.find(key);
    grants.push_back(
        {.key = key, .token = lock.owner_id(), .fence = lock.fence(), .slot = lock.slot()});
  }
  auto variables = grant_variables(grants);
  variables.emplace_back(reentry::kVariable, outer_run_.addresses());
  if (spec_.once) {
    const std::string& period = spec_.once->completion.period;
    variables.emplace_back("DLOCK_ONCE", spec_.keys.front() + (period.empty() ? "" : '@' + period));
  }
  return variables;
}

void Supervisor::start_command() {
  // A lock that this run borrows itself is not offered: nested runs find the run that holds it.
  std::vector<std::string> owner_ids;
  for (const auto& lock : locks_.all()) {
    if (!lock->borrowed()) owner_ids.push_back(lock->owner_id());
  }
  if (!owner_ids.empty() && !outer_run_.open(owner_ids))
    return fail("cannot listen on a local socket");
  CommandSpec command;
  command.argv = spec_.argv;
  command.environment = environment();
  // The terminal sends Ctrl-C to its whole foreground group.  If that happens between the
  // launcher's "go" and this line, the signal is pending in this process.  The launcher assumes
  // that the command has it, but there is no command yet: only this process can act on it.
  end_.refused_by = pending_interrupt();
  if (end_.refused_by != 0) return;
  job_.start(command, context_.inherited, margins_.kill_after);
  context_.inherited.drop();
  // Leave the launcher's group and session, now that the command is in them: a signal that stops or
  // kills the group must not stop the renewals.  A new group in the same session is not enough: the
  // command, with its parent in another group, would keep the launcher's group from being orphaned
  // until it exits.  Then the kernel would send SIGHUP to the whole group if a member is stopped.
  setsid();
}

void Supervisor::on_signal(int sig, bool from_terminal) {
  if (!job_.started()) {
    if (end_.refused_by == 0) end_.refused_by = sig;
    return;
  }
  const bool is_first = asks_to_end(sig) && job_.asked_to_end_by() == 0;
  job_.signal(sig, from_terminal);
  if (is_first) log_ending(context_, sig, "signal " + std::to_string(sig));
}

void Supervisor::read_signals() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    if (info.ssi_signo == SIGTERM) on_signal(SIGTERM, false);
  }
}

void Supervisor::read_link() {
  while (const auto message = link_.receive()) {
    if (message->kind == ToSupervisor::Kind::signal) {
      on_signal(message->signal, message->from_terminal);
    } else if (!job_.started() && end_.refused_by == 0 && !end_.loss && !end_.max_hold_over) {
      start_command();
    }
  }
  if (link_.closed() && !end_.launcher_gone) {
    end_.launcher_gone = true;
    const Deadline now = Clock::now();
    const int signal = job_.end(now, now);
    if (job_.started()) log_ending(context_, signal, "killed");
  }
}

std::vector<HeldLockOffer> Supervisor::offers() const {
  std::vector<HeldLockOffer> out;
  for (const auto& lock : locks_.all()) {
    if (lock->borrowed() || lock->is_lost() || end_.max_hold_over) continue;
    out.push_back(
        {lock->key(), lock->owner_id(), lock->lease_end(), lock->ttl(), lock->lock_fds()});
  }
  return out;
}

void Supervisor::serve_nested_runs() {
  const auto lent = offers();
  for (int i = 0; i < kMostRounds && outer_run_.serve(lent); ++i) {
  }
}

bool Supervisor::finished(Deadline now) {
  if (job_.started()) {
    if (!job_.advance(now)) return false;
    if (!(staying_ || spec_.once) || !outer_run_.has_nested_runs()) return true;
    if (!staying_ && !std::exchange(leftovers_named_, true)) name_leftovers(context_, true);
    return false;
  }
  return end_.refused_by != 0 || end_.loss || end_.max_hold_over || end_.launcher_gone ||
         end_.failure || job_.start_error() != 0;
}

// A job that is ended because of a loss is ended sooner.
Deadline Supervisor::max_hold_ends_at() const {
  const bool counts = !end_.max_hold_over && (!end_.loss || spec_.on_lost == OnLost::ignore);
  return spec_.max_hold && counts ? after(granted_at_, *spec_.max_hold) : kNever;
}

Deadline Supervisor::launcher_answers_by() const {
  return job_.started() ? kNever : after(granted_at_, kLauncherAnswers);
}

void Supervisor::watch() {
  std::vector<pollfd> fds;
  for (;;) {
    const Deadline now = Clock::now();
    look_at_clock(now);
    if (finished(now)) return;
    stuck_.say_if_stuck(context_, job_, locks_.lost_keys());
    fds = {{signals_.get(), POLLIN, 0}, {link_.fd(), POLLIN, 0}, {outer_run_.fd(), POLLIN, 0}};
    locks_.add_lost_fds(fds);
    util::poll(fds, std::min({locks_.next_deadline(), job_.next_deadline(now), max_hold_ends_at(),
                              outer_run_.next_deadline(), launcher_answers_by()}));
    look_at_clock(Clock::now());  // before a message can start the command: the lease may be over
    if (fds[0].revents != 0) read_signals();
    if (fds[1].revents != 0) read_link();
    if (Clock::now() >= launcher_answers_by()) {
      end_.failure =
          not_acquired({Errc::busy, "released " + keys() + " without running " +
                                        spec_.argv.front() + ": " + launcher_was_suspended()},
                       spec_.conflict_status);
    }
    if (fds[2].revents != 0 || Clock::now() >= outer_run_.next_deadline()) serve_nested_runs();
  }
}

Outcome Supervisor::run_under_lock() {
  const auto fence = locks_.find(spec_.keys.front())->fence();
  watch();
  context_.page.guarded = false;
  context_.page.job_ended = true;
  while (link_.receive()) {  // signals that came too late for it
  }
  Outcome out = outcome();
  out.held = since(granted_at_);
  out.fence = fence;
  if (!job_.stuck().empty()) out.reason += (out.reason.empty() ? "" : "; ") + job_.stuck();
  // A nested run may have asked since the last look.
  if (outer_run_.fd() >= 0 && !spec_.once) serve_nested_runs();
  if (job_.started() && !job_.tree_is_gone() && !leftovers_named_) {
    name_leftovers(context_, outer_run_.has_nested_runs());
  }
  return out;
}

void Supervisor::release(Outcome& outcome) {
  outer_run_ = OuterRun();
  note_losses(locks_.release(Cancel(link_.fd())), outcome);
}

void Supervisor::note_losses(const std::vector<HeldLocks::Loss>& losses, Outcome& outcome) const {
  if (const auto lost = say_lost_before_the_end(context_, losses, spec_.argv.front())) {
    outcome.name = "lost";
    outcome.exit_status = exit_status::kLost;
    outcome.reason = lost->message;
  }
}

// The lock is released in the same step.  Only a signal that asks to end ends the tries before the
// lease is over.  The end of the launcher does not: the command has succeeded.
void Supervisor::complete(Outcome& outcome) {
  outer_run_ = OuterRun();
  bool impatient = false;
  auto done = locks_.complete(spec_.once->completion, Cancel(link_.fd()));
  while (!done && done.error().code == Errc::cancelled && !impatient) {
    while (const auto message = link_.receive()) {
      impatient = impatient ||
                  (message->kind == ToSupervisor::Kind::signal && asks_to_end(message->signal));
    }
    if (!impatient) done = locks_.complete(spec_.once->completion, Cancel(link_.fd()));
  }
  if (done) return context_.event_log.write("done", spec_.keys.front(), {});
  const bool was_lost = done.error().code == Errc::lost;
  if (was_lost) note_loss(context_, spec_.keys.front());
  outcome.name = was_lost ? "lost" : "unreachable";
  outcome.exit_status = was_lost ? exit_status::kLost : exit_status::kUnreachable;
  const Error error{was_lost ? Errc::lost : Errc::unreachable,
                    spec_.argv.front() + " succeeded, but it could not be remembered that " +
                        keys() + " is done, so it may be run again: " + done.error().message};
  outcome.reason = with_origin(error, context_.target).message;
  util::log(Level::error, outcome.reason);
  // If the result is in doubt, the lock may be gone.
  (void)locks_.release(Cancel(link_.fd()));
}

std::vector<HeldLocks::Loss> Supervisor::expire_when_held_long_enough() {
  outer_run_ = OuterRun();
  return locks_.expire_at(held_long_enough_at(), Cancel(link_.fd()));
}

// The caller has its status and descriptors back.  The lock is kept for nested runs and --min-hold.
void Supervisor::stay_behind() {
  util::log_end();
  context_.inherited.drop();
  const sigset_t term = term_and(0);  // there is no job to pass it on to
  sigprocmask(SIG_UNBLOCK, &term, nullptr);
  staying_ = true;
  if (outer_run_.has_nested_runs()) {
    watch();
    (void)expire_when_held_long_enough();
  }
  locks_.release_at(held_long_enough_at());
  _exit(0);
}

void Supervisor::run() {
  become_subreaper();
  util::set_process_title(std::string(util::kSupervisorName) + " for pid " +
                          std::to_string(context_.launcher));
  // A stopped supervisor wakes up when the launcher is killed, and ends the job.
  prctl(PR_SET_PDEATHSIG, SIGCONT);
  auto error = signals_ ? acquire() : Error{Errc::unreachable, strerror(errno)};
  const Millis waited = since(context_.started);
  if (acquisition_.has_told()) util::log_beside_status_line(false);
  Outcome result;
  if (const auto& done = acquisition_.done()) {
    result.name = "done";
    result.exit_status = spec_.once->done_status;
    result.reason = "not running " + spec_.argv.front() + ": " + done_in_words(*done);
  } else if (!error) {
    result = run_under_lock();
  } else if (error->code == Errc::cancelled) {
    read_signals();
    read_link();
    result = outcome();
  } else {
    result = not_acquired(*error, spec_.conflict_status);
  }
  report(context_, job_, end_, result);
  const bool too_early = !end_.loss && Clock::now() < held_long_enough_at();
  bool stays = !spec_.once && !locks_.empty() && job_.status() && job_.start_error() == 0 &&
               (too_early || outer_run_.has_nested_runs());
  // Before the launcher returns: if it is the first process of a container, no process outlives it.
  if (stays && !outer_run_.has_nested_runs()) {
    note_losses(expire_when_held_long_enough(), result);
    stays = !locks_.empty();
  }
  if (spec_.once && result.name == "completed" && result.exit_status == 0) {
    complete(result);
  } else if (!locks_.empty() && !stays) {
    release(result);
  }

  result.backend = acquisition_.location_of(spec_.keys.front());
  result.waited = waited;
  result.other = acquisition_.other();
  result.killed = end_.launcher_gone;
  result.is_returned = !end_.launcher_gone;
  context_.status_file.write(spec_.keys.front(), result);
  log_end(context_, result);
  context_.page.exit_status = result.exit_status;
  context_.page.left_behind = stays;
  context_.page.ended = true;
  link_.close();
  if (stays) stay_behind();
  util::log_flush();
  _exit(0);
}

}  // namespace

void supervise(const RunContext& context, SupervisorEnd link) noexcept {
  Supervisor(context, std::move(link)).run();
}

}  // namespace dlock
