// From the grant on everything happens in one loop, watch(), which looks at the clock first, so
// that the first act after a pause of the machine is to compare it with the end of the lease.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
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
#include "engine/run_events.hpp"
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

// Until the launcher has answered a grant.  It does not while it is stopped; others wait meanwhile.
constexpr Millis kLauncherAnswers{5'000};
constexpr int kMostRounds = 64;  // of answers to runs below, before anything else is looked at

// `kill $PPID` in the job: the supervisor is the command's parent.  SIGTERM means the same
// whichever process of dlock it is sent to, unless it was ignored when dlock started.
sigset_t term_and(int more) {
  sigset_t out;
  sigemptyset(&out);
  if (!ignores(SIGTERM)) sigaddset(&out, SIGTERM);
  if (more != 0) sigaddset(&out, more);
  return out;
}

// A new one, or what an old one tells from now on.
int signal_fd(int old, const sigset_t& signals) {
  return signalfd(old, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

// SIGINT or SIGQUIT, if it is pending in this process and was not ignored when dlock started;
// otherwise 0.
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
  void lose(const HeldLocks::Loss& loss, Deadline now);
  const HeldLock& first() const { return *locks_.find(spec_.keys.front()); }
  std::string keys() const { return keys_in_words(spec_.keys); }

  Outcome run_under_lock();
  Outcome outcome() const;
  Outcome not_started(int error) const;
  void report(const Outcome& outcome) const;
  void say_stuck();
  void name_leftovers() const;
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
  Deadline granted_at_ = kNever;  // the last of them, and the launcher was told
  OuterRun outer_run_;            // to runs below this one
  Job job_{spec_.leftovers, spec_.kill_after, context_.tree};
  bool stuck_said_ = false;
  bool leftovers_named_ = false;
  int refused_by_ = 0;              // a signal that came before the command was started
  std::optional<Outcome> failure_;  // why else the command was not started
  std::optional<HeldLocks::Loss> loss_;
  bool max_hold_over_ = false;
  bool launcher_gone_ = false;
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
  job_.set_kill_after(margins_.kill_after);
  context_.page.fence = first().fence().value_or(0);
  context_.page.granted_at = granted_at_.time_since_epoch().count();
  context_.page.granted = true;
  context_.page.kill_after = margins_.kill_after.count();
  context_.page.guarded = spec_.on_lost != OnLost::ignore;
  if (!locks_.send_lock_fds(link_) || !link_.send({ToLauncher::Kind::granted}))
    fail("cannot pass a descriptor to the other process of dlock");
  log_acquired(context_, locks_);
  return std::nullopt;
}

void Supervisor::fail(const char* what) {
  failure_ = Outcome{.name = "error", .exit_status = exit_status::kInternal};
  failure_->reason = std::string(what) + ": " + strerror(errno);
}

void Supervisor::lose(const HeldLocks::Loss& loss, Deadline now) {
  outer_run_.recall_all_but(offers());
  note_loss(context_, loss.key);
  const std::string message = "lost " + in_quotes(loss.key) + ": " + loss.error.message;
  if (spec_.on_lost == OnLost::ignore) {
    if (!loss_) loss_ = loss;
    util::log(Level::error, message + "; " + spec_.argv.front() +
                                " goes on without the lock, as --on-lost ignore asks");
    return;
  }
  if (loss_) return util::log(Level::error, message);
  loss_ = loss;
  if (staying_) return;  // runs that borrowed end by themselves; the rest is the user's affair
  const Millis patience = spec_.on_lost == OnLost::kill ? Millis{0} : margins_.kill_after;
  job_.end(std::min(after(now, patience), margins_.kill_at(context_.page.lease_end())), now);
  if (job_.started()) log_ending(context_, patience == Millis{0} ? SIGKILL : SIGTERM, "lost");
  util::log(Level::error, message + "; ending " + spec_.argv.front() + " (pid " +
                              std::to_string(job_.pid()) + ')');
}

void Supervisor::look_at_clock(Deadline now) {
  for (const auto& loss : locks_.look(now)) lose(loss, now);
  if (!loss_ && spec_.max_hold && !max_hold_over_ && now >= after(granted_at_, *spec_.max_hold)) {
    max_hold_over_ = true;
    outer_run_.recall_all_but({});
    if (staying_) return;
    job_.end(after(now, margins_.kill_after), now);
    if (job_.started()) log_ending(context_, SIGTERM, "max-hold");
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
  // What is borrowed is not lent: runs below this one find the holder above by themselves.
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
  // that the command has received the signal, but the command does not exist yet: only this process
  // can act on it.
  refused_by_ = pending_interrupt();
  if (refused_by_ != 0) return;
  job_.start(command, context_.inherited);
  context_.inherited.drop();
  // Now that the command is in the launcher's group and session, out of both: what stops or kills
  // the group is not to stop the renewals.  A group of the same session would not do: the command,
  // a member of one group with its parent in another, would keep the launcher's from being an
  // orphaned one until it exits, and then the kernel sends SIGHUP to all of it if a member is
  // stopped.
  setsid();
}

void Supervisor::on_signal(int sig, bool from_terminal) {
  if (!job_.started()) {
    if (refused_by_ == 0) refused_by_ = sig;
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
    } else if (!job_.started() && refused_by_ == 0 && !loss_ && !max_hold_over_) {
      start_command();
    }
  }
  if (link_.closed() && !launcher_gone_) {
    launcher_gone_ = true;
    const Deadline now = Clock::now();
    job_.end(now, now);
    if (job_.started()) log_ending(context_, SIGKILL, "killed");
  }
}

void Supervisor::say_stuck() {
  if (stuck_said_ || job_.stuck().empty()) return;
  stuck_said_ = true;
  util::log(Level::error, job_.stuck() + (loss_ ? "; another holder can have " +
                                                      in_quotes(loss_->key) + " before it has ended"
                                                : "; keeping " + keys() + " until it has ended"));
}

std::vector<HeldLockOffer> Supervisor::offers() const {
  std::vector<HeldLockOffer> out;
  for (const auto& lock : locks_.all()) {
    if (lock->borrowed() || lock->is_lost() || max_hold_over_) continue;
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
    if (!job_.finished(now)) return false;
    if (!(staying_ || spec_.once) || !outer_run_.has_nested_runs()) return true;
    if (!staying_ && !std::exchange(leftovers_named_, true)) name_leftovers();
    return false;
  }
  return refused_by_ != 0 || loss_ || max_hold_over_ || launcher_gone_ || failure_ ||
         job_.start_error() != 0;
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
    say_stuck();
    fds = {{signals_.get(), POLLIN, 0}, {link_.fd(), POLLIN, 0}, {outer_run_.fd(), POLLIN, 0}};
    locks_.add_lost_fds(fds);
    Deadline next = std::min({locks_.next_deadline(), job_.next_deadline(now),
                              outer_run_.next_deadline(), launcher_answers_by()});
    if (spec_.max_hold && !max_hold_over_ && !loss_) {
      next = std::min(next, after(granted_at_, *spec_.max_hold));
    }
    util::poll(fds, next);
    look_at_clock(Clock::now());  // before a message can start the command: the lease may be over
    if (fds[0].revents != 0) read_signals();
    if (fds[1].revents != 0) read_link();
    if (Clock::now() >= launcher_answers_by()) {
      failure_ = not_acquired(
          {Errc::busy, "released " + keys() + " without running " + spec_.argv.front() +
                           ": this dlock was suspended (Ctrl-Z, SIGSTOP) when the lock was "
                           "granted, and did not resume within " +
                           util::format_duration(kLauncherAnswers)},
          spec_.conflict_status);
    }
    if (fds[2].revents != 0 || Clock::now() >= outer_run_.next_deadline()) serve_nested_runs();
  }
}

Outcome Supervisor::not_started(int error) const {
  const bool missing = error == ENOENT || error == ENOTDIR;
  Outcome out;
  out.name = "not-started";
  out.exit_status = missing ? exit_status::kNotFound : exit_status::kNotExecutable;
  out.reason = why_not_started(spec_.argv.front(), error);
  if (!job_.started()) {
    out.exit_status = exit_status::kInternal;
    out.reason = "cannot start " + spec_.argv.front() + ": fork: " + strerror(error);
  }
  return out;
}

Outcome Supervisor::outcome() const {
  const auto make = [](std::string_view name, int exit_status, std::string reason) {
    Outcome out;
    out.name = name;
    out.exit_status = exit_status;
    out.reason = std::move(reason);
    return out;
  };
  if (loss_) return make("lost", exit_status::kLost, loss_->error.message);
  if (launcher_gone_) return make("error", exit_status::kInternal, "dlock itself was killed");
  if (refused_by_ != 0) {
    return make("signalled", exit_status::kSignalBase + refused_by_,
                "ended by signal " + std::to_string(refused_by_) + " before the command started");
  }
  if (failure_) return *failure_;
  if (job_.start_error() != 0) return not_started(job_.start_error());
  if (max_hold_over_) {
    return make("max-hold", exit_status::kMaxHold, "the command ran for longer than --max-hold");
  }
  if (!job_.status()) return make("error", exit_status::kInternal, "the command was not started");
  const int status = *job_.status();
  const int asked_by = job_.asked_to_end_by();
  if (spec_.once && status == 0 && asked_by != 0) {
    return make("signalled", exit_status::kSignalBase + asked_by,
                spec_.argv.front() + " exited with 0 after dlock had passed signal " +
                    std::to_string(asked_by) + " on to it; " + keys() + " does not count as done");
  }
  if (WIFSIGNALED(status)) {
    return make("signalled", exit_status::kSignalBase + WTERMSIG(status),
                "the command died of signal " + std::to_string(WTERMSIG(status)));
  }
  return make("completed", WEXITSTATUS(status), "");
}

// What was not said when it happened.
void Supervisor::report(const Outcome& outcome) const {
  const bool looks_done = outcome.name == "signalled" && spec_.once && job_.status() == 0;
  if (outcome.name == "done") {
    util::log(Level::note, outcome.reason);
  } else if (outcome.name == "busy") {
    util::log(Level::warning, outcome.reason);  // -q: the exit status says it
  } else if (launcher_gone_) {
    util::log(Level::error, "dlock (pid " + std::to_string(context_.launcher) + ") was killed" +
                                (job_.started() ? "; ended " + spec_.argv.front() : std::string()));
  } else if (outcome.name == "not-started" || outcome.name == "unreachable" ||
             outcome.name == "denied" || outcome.name == "error" || looks_done) {
    util::log(Level::error, outcome.reason);
  }
}

void Supervisor::name_leftovers() const {
  std::string names;
  for (const Process& process : context_.tree.alive()) {
    // Of a nested run, which is named itself; or they end with the script that they keep a lock
    // for.
    if (util::may_hold_locks(process.name)) continue;
    if (!names.empty()) names += ", ";
    if (names.size() > 200) {
      names += "...";
      break;
    }
    names += process.name + " (pid " + std::to_string(process.pid) + ')';
  }
  if (names.empty()) return;
  util::log(Level::warning,
            spec_.argv.front() + " has ended; still running" +
                (outer_run_.has_nested_runs() ? ": " + names + "; keeping " + keys() +
                                                    " until the nested runs of dlock have ended"
                                              : " without the lock: " + names) +
                " (see --leftovers)");
}

Outcome Supervisor::run_under_lock() {
  const auto fence = first().fence();
  watch();
  context_.page.guarded = false;
  Outcome out = outcome();
  out.held = since(granted_at_);
  out.fence = fence;
  if (!job_.stuck().empty()) out.reason += (out.reason.empty() ? "" : "; ") + job_.stuck();
  if (outer_run_.fd() >= 0 && !spec_.once)
    serve_nested_runs();  // a run may have asked since the last look
  if (job_.started() && !job_.tree_is_gone() && !leftovers_named_) name_leftovers();
  return out;
}

void Supervisor::release(Outcome& outcome) {
  outer_run_ = OuterRun();
  note_losses(locks_.release(Cancel(link_.fd())), outcome);
}

void Supervisor::note_losses(const std::vector<HeldLocks::Loss>& losses, Outcome& outcome) const {
  for (const auto& [key, error] : losses) {
    if (error.code != Errc::lost) continue;
    note_loss(context_, key);
    util::log(Level::error, "lost " + in_quotes(key) + " before " + spec_.argv.front() +
                                " had ended: " + error.message);
    outcome.name = "lost";
    outcome.exit_status = exit_status::kLost;
    outcome.reason = error.message;
  }
}

// The lock goes in the same step.  Only a signal that asks to end makes it give up before the lease
// is over, and not the end of the launcher: the command has succeeded.
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
  // If that was in doubt, it may be gone.
  (void)locks_.release(Cancel(link_.fd()));
}

std::vector<HeldLocks::Loss> Supervisor::expire_when_held_long_enough() {
  outer_run_ = OuterRun();
  return locks_.expire_at(held_long_enough_at(), Cancel(link_.fd()));
}

// The caller has its exit status and its descriptors back.  The lock is kept for runs that borrowed
// it and have not ended, and for --min-hold.
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
  report(result);
  const bool too_early = !loss_ && Clock::now() < held_long_enough_at();
  bool stays = !spec_.once && !locks_.empty() && job_.status() && job_.start_error() == 0 &&
               (too_early || outer_run_.has_nested_runs());
  // Before the launcher returns: where it is the first process of a container, nobody outlives it.
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
  result.killed = launcher_gone_;
  result.is_returned = !launcher_gone_;
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
