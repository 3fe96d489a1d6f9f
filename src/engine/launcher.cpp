// The launcher has no thread, loads nothing and allocates little: it must work whatever happens to
// the supervisor.  It does one thing by itself: it ends the tree (it is the subreaper above the
// supervisor), and only then closes the descriptors that keep a kernel lock.  It does so if the
// supervisor dies, or does not move the end of the lease in time (it may be stopped), and if a wait
// does not end although a signal asked for that.

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

#include "engine/describe.hpp"
#include "engine/job.hpp"
#include "engine/margins.hpp"
#include "engine/processes.hpp"
#include "engine/run_events.hpp"
#include "process/proc.hpp"
#include "process/process_tree.hpp"
#include "util/duration.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"

namespace dlock {
namespace {

using util::Level;

constexpr Millis kSilent{400};  // before a wait is worth a message
constexpr Millis kTick{1'000};  // of the clock in a waiting message on a terminal
// A second signal sooner than this is the other half of the first (timeout(1) sends two).
constexpr Millis kImpatience{500};
constexpr Millis kCancels{1'000};  // in which a supervisor ends its wait, besides a last answer

bool is_stop(int sig) { return sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU; }

// The terminal sends these to its whole foreground group, so the command has received them.  Other
// signals of the kernel have reached dlock alone: SIGHUP to a session leader whose terminal is
// gone, SIGALRM of a timer set before exec, SIGXCPU.
bool is_from_terminal(const signalfd_siginfo& info) {
  const int sig = static_cast<int>(info.ssi_signo);
  return info.ssi_code == SI_KERNEL &&
         (sig == SIGINT || sig == SIGQUIT || sig == SIGWINCH || is_stop(sig));
}

// The kernel raises these when dlock writes to a closed pipe, or to a file at its size limit.
bool is_from_our_write(const signalfd_siginfo& info) {
  return (info.ssi_signo == SIGPIPE || info.ssi_signo == SIGXFSZ) &&
         static_cast<pid_t>(info.ssi_pid) == getpid();
}

// Signals that do not end a process by default do not end its wait either.
bool ends_a_wait(int sig) {
  return sig != SIGCONT && sig != SIGWINCH && sig != SIGURG && sig != SIGCHLD;
}

// Stops this process as the signal would if it were not blocked; returns when continued.  The end
// of the supervisor raises SIGCONT, which cancels a pending stop.  If it had ended before, this
// process must not stop: no other process is left that ends the job.
void stop_self(int sig, const Fd& life_of_supervisor) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, sig);
  kill(getpid(), sig);
  if (util::wait_readable(life_of_supervisor.get(), Deadline{})) kill(getpid(), SIGCONT);
  sigprocmask(SIG_UNBLOCK, &one, nullptr);
  sigprocmask(SIG_BLOCK, &one, nullptr);
}

[[noreturn]] void die_of(int sig) {
  signal(sig, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, sig);
  kill(getpid(), sig);
  sigprocmask(SIG_UNBLOCK, &one, nullptr);
  _exit(exit_status::kSignalBase + sig);
}

std::string end_in_words(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return " was killed by signal " + std::to_string(WTERMSIG(wait_status));
  }
  return " failed with status " + std::to_string(WEXITSTATUS(wait_status));
}

class Launcher {
 public:
  Launcher(const RunContext& context, LauncherEnd link, pid_t supervisor,
           const Fd& life_of_supervisor)
      : context_(context),
        link_(std::move(link)),
        supervisor_(supervisor),
        life_of_supervisor_(life_of_supervisor),
        report_(context.spec.keys, context.started, context.spec.wait) {}

  int run();

 private:
  /// Ends the supervisor and every process of the job; returns when they are gone.
  void end_tree();
  bool make_signal_fd();
  void read_signals();
  void on_signal(const signalfd_siginfo& info);
  void on_signal_while_waiting(int sig);
  void read_link();
  void on_blocked(const Blocked& blocked);
  void on_granted();
  void tell(const ToSupervisor& message);
  void show_waiting(Deadline now);
  Margins margins() const { return {Millis{context_.page.kill_after}}; }
  Deadline takes_over_at() const;
  int report_take_over(std::string reason);

  const RunContext& context_;
  LauncherEnd link_;
  const pid_t supervisor_;
  const Fd& life_of_supervisor_;
  Fd signals_;
  std::vector<Fd> lock_fds_;

  bool waiting_ = true;   // for "go" to the command; with `acquire`, to the end
  int cancelled_by_ = 0;  // the first signal that asked to end the wait
  Deadline cancelled_at_ = kNever;
  bool impatient_ = false;
  bool terminal_interrupt_ = false;
  bool hand_out_failed_ = false;

  WaitReport report_;
  Deadline show_at_ = kNever;

  bool supervisor_gone_ = false;
  int supervisor_status_ = 0;  // of wait(2)
};

bool Launcher::make_signal_fd() {
  sigset_t wanted;
  sigfillset(&wanted);
  signals_.reset(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  return static_cast<bool>(signals_);
}

void Launcher::on_signal_while_waiting(int sig) {
  if (!ends_a_wait(sig)) return;
  const Deadline now = Clock::now();
  if (cancelled_by_ == 0) {
    cancelled_by_ = sig;
    cancelled_at_ = now;
    tell({ToSupervisor::Kind::signal, sig, false});
  } else if (now >= after(cancelled_at_, kImpatience)) {
    impatient_ = true;
  }
}

void Launcher::on_signal(const signalfd_siginfo& info) {
  const int sig = static_cast<int>(info.ssi_signo);
  const bool from_terminal = is_from_terminal(info);
  if (sig == SIGCHLD) {
    if (const Reaped reaped = context_.tree.reap(supervisor_); reaped.pid > 0) {
      supervisor_gone_ = true;
      supervisor_status_ = reaped.status;
    }
    return;
  }
  // A blocked signal is received even if it is ignored.
  if (ignores(sig) || is_from_our_write(info)) return;
  if (sig == SIGINT && from_terminal) terminal_interrupt_ = true;
  const bool is_told = !waiting_ && (!context_.page.job_ended || asks_to_end(sig));
  if (is_stop(sig)) {
    // A job that stops its whole group, as editors do, has stopped itself already.
    const bool from_job =
        !from_terminal && below_us(static_cast<pid_t>(info.ssi_pid)) == Below::yes;
    if (!from_terminal && !from_job && is_told) tell({ToSupervisor::Kind::signal, sig, false});
    stop_self(sig, life_of_supervisor_);
  } else if (waiting_) {
    on_signal_while_waiting(sig);
  } else if (is_told) {
    tell({ToSupervisor::Kind::signal, sig, from_terminal});
  }
}

void Launcher::read_signals() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    on_signal(info);
  }
}

// If the message cannot be sent, the end of the link tells the supervisor to end the run.
void Launcher::tell(const ToSupervisor& message) {
  if (link_.send(message)) return;
  util::log(Level::error, std::string("cannot send a message to the supervisor: ") +
                              strerror(errno) + "; ending " + context_.spec.argv.front());
  link_.close();
}

void Launcher::on_blocked(const Blocked& blocked) {
  const Deadline now = Clock::now();
  report_.blocked(blocked, now);
  show_at_ = std::max(now, after(context_.started, kSilent));
}

void Launcher::show_waiting(Deadline now) {
  show_at_ = kNever;
  if (!waiting_ || context_.page.ended || !report_.is_blocked() || !util::log_shows(Level::note)) {
    return;
  }
  if (util::log_has_terminal()) {
    util::log_status_line(report_.line(now, util::log_columns()), report_.take_label());
    show_at_ = after(now, kTick);
    return;
  }
  for (const std::string& line : report_.take_lines(now)) util::log(Level::note, line);
  show_at_ = report_.next();
}

void Launcher::on_granted() {
  util::log_status_line("");
  read_signals();  // once more, between grant and exec
  const std::string acquired = report_.acquired(Clock::now());
  report_.over();
  if (cancelled_by_ != 0) return;
  if (!acquired.empty()) util::log(Level::note, acquired);
  if (!context_.hand_out) {
    waiting_ = false;
    return tell({ToSupervisor::Kind::go});
  }
  if (!context_.page.decide(HandOut::begun)) return;  // this process was stopped for too long
  hand_out_failed_ = !context_.hand_out(context_.page);
  tell({hand_out_failed_ ? ToSupervisor::Kind::signal : ToSupervisor::Kind::go, SIGPIPE, false});
}

void Launcher::read_link() {
  while (const auto message = link_.receive(&lock_fds_)) {
    if (message->kind == ToLauncher::Kind::blocked) {
      on_blocked(message->blocked);
    } else if (message->kind == ToLauncher::Kind::granted) {
      on_granted();
    }
  }
}

// Never once `acquire` has handed out its locks: the guard watches over those.
Deadline Launcher::takes_over_at() const {
  if (context_.page.ended || context_.page.kept) return kNever;
  if (supervisor_gone_ || impatient_) return {};
  if (cancelled_by_ != 0) return after(cancelled_at_, context_.target.connect_timeout + kCancels);
  return context_.page.guarded ? margins().launcher_kills_at(context_.page.lease_end()) : kNever;
}

void Launcher::end_tree() {
  const bool reaped = std::exchange(supervisor_gone_, true);
  if (!reaped) kill(supervisor_, SIGKILL);  // our child, not reaped: its own number
  context_.tree.end(say_stuck);
  lock_fds_.clear();  // from here on the lock may be free
}

int Launcher::report_take_over(std::string reason) {
  const bool had_lock = context_.page.granted && cancelled_by_ == 0;
  const Deadline lease_end = context_.page.lease_end();
  util::log_status_line("");
  Outcome out;
  out.backend = context_.target.url.redacted();
  const Deadline now = Clock::now();
  if (had_lock) {
    out.name = "lost";
    out.exit_status = exit_status::kLost;
    const bool one = context_.spec.keys.size() == 1;
    reason = "lost " + keys_in_words(context_.spec.keys) + ": " + reason;
    if (!context_.hand_out) reason += "; ended " + context_.spec.argv.front();
    if (lease_end != kNever && lease_end > now) {
      reason += std::string(one ? "; the lock expires" : "; the first lock expires") + " in " +
                util::format_duration(remaining(lease_end, now));
    }
    const Deadline granted_at{Deadline::duration(context_.page.granted_at.load())};
    out.held = std::chrono::duration_cast<Millis>(now - granted_at);
    out.waited = std::chrono::duration_cast<Millis>(granted_at - context_.started);
    if (context_.page.fence != 0) out.fence = context_.page.fence.load();
    for (const std::string& key : context_.spec.keys) note_loss(context_, key);
  } else {
    out.waited = std::chrono::duration_cast<Millis>(now - context_.started);
    // Of several locks it may have held some.
    if (lease_end != kNever) reason += "; the locks that it held already expire by themselves";
    out.name = cancelled_by_ != 0 ? "signalled" : "error";
    out.exit_status =
        cancelled_by_ != 0 ? exit_status::kSignalBase + cancelled_by_ : exit_status::kInternal;
  }
  out.reason = reason;
  out.killed = WIFSIGNALED(supervisor_status_);
  util::log(Level::error, reason);
  context_.status_file.write(context_.spec.keys.front(), out);
  log_end(context_, out);
  util::log_flush();
  return out.exit_status;
}

int Launcher::run() {
  if (!make_signal_fd()) {
    const int error = errno;
    end_tree();
    return report_take_over(std::string("signalfd: ") + strerror(error));
  }
  for (;;) {
    const Deadline now = Clock::now();
    if (now >= show_at_) show_waiting(now);
    if (now >= takes_over_at()) {
      const bool was_killed = supervisor_gone_;
      end_tree();
      if (cancelled_by_ != 0) {
        return report_take_over("ended by signal " + std::to_string(cancelled_by_) +
                                " while waiting");
      }
      return report_take_over(
          "the supervisor (pid " + std::to_string(supervisor_) + ')' +
          (was_killed ? end_in_words(supervisor_status_) : " did not renew the lock in time"));
    }
    if (context_.page.ended && (supervisor_gone_ || context_.page.left_behind)) break;
    if (context_.page.kept && supervisor_gone_) return exit_status::kLost;  // the guard says so
    std::array<pollfd, 3> fds{
        {{signals_.get(), POLLIN, 0},
         {link_.fd(), POLLIN, 0},
         {waiting_ && cancelled_by_ == 0 ? context_.script_ended_fd : -1, POLLIN, 0}}};
    util::poll(fds, std::min(show_at_, takes_over_at()));
    if (fds[2].revents != 0 && waiting_) on_signal_while_waiting(SIGHUP);
    if (fds[1].revents != 0) read_link();
    if (fds[0].revents != 0) read_signals();
  }
  util::log_status_line("");
  util::log_flush();
  const int status = hand_out_failed_ ? exit_status::kNo : context_.page.exit_status.load();
  // The shell reads $(dlock acquire ...) to its end, and uses the exit status.
  if (context_.hand_out) {
    context_.page.hand_out = HandOut::done;
    return status;
  }
  if (terminal_interrupt_ && status == exit_status::kSignalBase + SIGINT) die_of(SIGINT);
  return status;
}

}  // namespace

int attend(const RunContext& context, LauncherEnd link, pid_t supervisor,
           const Fd& life_of_supervisor) {
  return Launcher(context, std::move(link), supervisor, life_of_supervisor).run();
}

}  // namespace dlock
