// From the grant on everything happens in one loop, watch(), which looks at the clock first, so
// that the first act after a pause of the machine is to compare it with the end of the lease.
//
// The tree is ended in one way only: begin_end() sets the instant of the SIGKILL, which later
// causes can move forward and nothing moves back.  The loop is left when no process of the tree
// remains, or when what the command left running is none of our business.

#include "engine/supervisor.hpp"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/borrowed_lease.hpp"
#include "engine/command.hpp"
#include "engine/describe.hpp"
#include "engine/lease_keeper.hpp"
#include "engine/margins.hpp"
#include "engine/outcome.hpp"
#include "engine/process_tree.hpp"
#include "util/duration.hpp"
#include "util/host.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"
#include "util/random_id.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

using util::Level;
using util::quoted;

// A job that is done before this pays for no keeper: no thread, no subscription.
constexpr Millis kKeeperStarts{1'000};
// SIGKILL makes orphans, which become our children and are seen at the next sweep.
constexpr Millis kSweepAgain{20};
constexpr Millis kReleaseAgain{500};
// The front reads at its leisure; a stopped one must not fill the socket.
constexpr unsigned kMostBlockedMessages = 64;

bool ends_jobs(int sig) {
  return sig == SIGTERM || sig == SIGINT || sig == SIGHUP || sig == SIGQUIT;
}

// The one lock and the one command of a run.
class Supervisor {
 public:
  Supervisor(const RunContext& context, SupervisorEnd link)
      : context_(context), spec_(context.spec), link_(std::move(link)) {}

  [[noreturn]] void run();

 private:
  // Acquiring.
  std::optional<Error> acquire();
  Request make_request() const;
  void tell_blocked(const LockInfo& info);
  std::optional<Error> open_and_acquire();
  Error explain(Error error) const;

  // Watching.
  void watch();
  bool finished();
  void look_at_clock(Deadline now);
  Deadline next_deadline(Deadline now) const;
  void read_link();
  void on_signal(to_supervisor::Signal signal);
  void start_command();
  void read_exec_result();
  Deadline keeper_starts_at() const;
  void start_keeper();
  void lose(Error error, Deadline now);
  void begin_end(Deadline now, Millis patience);
  bool running() const { return command_ > 0 && !reaped_; }

  // Ending.
  Outcome outcome() const;
  void report(const Outcome& outcome) const;
  void give_up_lock(Outcome& outcome);
  std::unique_ptr<Lease> take_lease();
  bool stays_behind(const Outcome& outcome) const;
  [[noreturn]] void stay_behind();
  void name_leftovers() const;

  const RunContext& context_;
  const RunSpec& spec_;
  SupervisorEnd link_;
  const Margins margins_{spec_.kill_after};
  Fd children_;  // signalfd of SIGCHLD

  std::unique_ptr<Backend> backend_;
  std::string owner_id_ = util::random_id();
  std::string blocker_;  // who was in the way when last heard of
  unsigned blocked_messages_ = 0;
  std::unique_ptr<Lease> lease_;  // the keeper's once there is one
  std::unique_ptr<LeaseKeeper> keeper_;
  std::optional<std::uint64_t> fence_;
  Deadline granted_at_ = kNever;

  pid_t command_ = -1;
  Fd exec_result_;
  int exec_error_ = 0;  // why there is no command
  bool reaped_ = false;
  int status_ = 0;  // the command's wait status
  bool tree_gone_ = false;

  int refused_by_ = 0;  // a signal that came before the command was started
  bool ending_signal_seen_ = false;
  std::optional<Error> loss_;
  bool loss_is_certain_ = false;
  bool max_hold_over_ = false;
  bool front_gone_ = false;
  bool ending_ = false;
  Deadline kill_at_ = kNever;
};

Request Supervisor::make_request() const {
  Request request{.key = spec_.key, .mode = spec_.mode, .slots = spec_.slots, .ttl = spec_.ttl};
  request.owner.id = owner_id_;
  request.owner.host = util::host_name();
  request.owner.pid = context_.front;
  request.owner.user = util::user_name();
  request.owner.command = spec_.argv.front();
  request.owner.label = spec_.label;
  return request;
}

void Supervisor::tell_blocked(const LockInfo& info) {
  const std::string holder = holders_in_words(info);
  const auto held = info.holders.empty() ? std::nullopt : info.holders.front().held;
  const auto waiting = count_waiters(info);
  blocker_ = held_in_words(holder, held, std::nullopt);
  if (blocked_messages_++ < kMostBlockedMessages) {
    link_.send(to_front::Blocked{holder, held, waiting});
  }
}

std::optional<Error> Supervisor::open_and_acquire() {
  const Deadline connected_by = after(Clock::now(), context_.target.connect_timeout);
  auto backend = context_.entry.open(context_.target, connected_by, Cancel(link_.fd()));
  if (!backend) return backend.error();
  backend_ = std::move(*backend);

  const Request request = make_request();
  auto borrowed =
      borrow_lease(*backend_, request, after(Clock::now(), context_.target.connect_timeout));
  if (!borrowed) return borrowed.error();
  if (borrowed->lease) {
    util::log(Level::detail, quoted(spec_.key) + " is held by this job already");
    owner_id_ = borrowed->owner_id;
    lease_ = std::move(borrowed->lease);
    return std::nullopt;
  }

  Wait wait;
  wait.until = spec_.wait ? after(context_.started, *spec_.wait) : kNever;
  wait.cancel = Cancel(link_.fd());
  wait.on_blocked = [this](const LockInfo& info) { tell_blocked(info); };
  auto lease = backend_->acquire(request, wait);
  if (!lease) return explain(lease.error());
  lease_ = std::move(*lease);
  return std::nullopt;
}

Error Supervisor::explain(Error error) const {
  if (error.code != Errc::busy) return error;
  const Millis waited = std::chrono::duration_cast<Millis>(Clock::now() - context_.started);
  const bool tried_once = !spec_.wait || *spec_.wait == Millis{0};
  error.message = quoted(spec_.key) + (blocker_.empty() ? " is busy" : " is " + blocker_);
  if (!tried_once) {
    error.message = "gave up after " + util::format_duration(waited) + ": " + error.message;
  }
  return error;
}

std::optional<Error> Supervisor::acquire() {
  if (auto error = open_and_acquire()) return error;
  granted_at_ = Clock::now();
  if (granted_at_ >= margins_.term_at(lease_->valid_until())) {
    (void)lease_->release(after(granted_at_, context_.target.connect_timeout), Cancel());
    return Error{Errc::unreachable, backend_->location() + " granted " + quoted(spec_.key) +
                                        " too late: too little of its --ttl was left"};
  }
  fence_ = lease_->fence();
  context_.page.fence = fence_.value_or(0);
  context_.page.granted_at = granted_at_.time_since_epoch().count();
  context_.page.valid_until = lease_->valid_until().time_since_epoch().count();
  context_.page.granted = true;
  context_.page.guarded = spec_.on_lost != OnLost::ignore;
  const int witness = lease_->witness_fd();
  link_.send(to_front::Granted{Fd(witness >= 0 ? dup(witness) : -1)});
  return std::nullopt;
}

void Supervisor::lose(Error error, Deadline now) {
  loss_ = std::move(error);
  std::string message = "lost " + quoted(spec_.key) + ": " + loss_->message;
  if (spec_.on_lost == OnLost::ignore) {
    util::log(Level::error, message + "; " + spec_.argv.front() +
                                " goes on without the lock, as --on-lost ignore asks");
    return;
  }
  util::log(Level::error, message + "; ending " + spec_.argv.front());
  begin_end(now, spec_.on_lost == OnLost::kill ? Millis{0} : spec_.kill_after);
  kill_at_ = std::min(kill_at_, margins_.kill_at(context_.page.lease_end()));
}

void Supervisor::begin_end(Deadline now, Millis patience) {
  if (!ending_ && patience > Millis{0} && command_ > 0) {
    signal_tree(SIGTERM);
    signal_tree(SIGCONT);  // a stopped process would not hear it before the SIGKILL
  }
  ending_ = true;
  kill_at_ = std::min(kill_at_, after(now, patience));
}

Deadline Supervisor::keeper_starts_at() const {
  return after(granted_at_, std::min(kKeeperStarts, spec_.ttl / 3));
}

void Supervisor::start_keeper() {
  const LeaseKeeper::Spec spec{spec_.key, spec_.ttl, margins_};
  keeper_ = std::make_unique<LeaseKeeper>(std::move(lease_), spec, context_.page.valid_until);
}

void Supervisor::look_at_clock(Deadline now) {
  const Deadline lease_end = context_.page.lease_end();
  if (!loss_ && keeper_ && keeper_->loss()) {
    loss_is_certain_ = true;
    lose(*keeper_->loss(), now);
  }
  if (!loss_ && now >= margins_.term_at(lease_end)) {
    const auto trouble = keeper_ ? keeper_->trouble() : std::nullopt;
    lose({Errc::lost, trouble ? trouble->message : "it could not be renewed in time"}, now);
  }
  if (!loss_ && spec_.max_hold && !max_hold_over_ && now >= after(granted_at_, *spec_.max_hold)) {
    max_hold_over_ = true;
    util::log(Level::warning, "--max-hold " + util::format_duration(*spec_.max_hold) +
                                  " is over; ending " + spec_.argv.front());
    begin_end(now, spec_.kill_after);
  }
  if (!loss_ && !keeper_ && now >= keeper_starts_at()) start_keeper();
  if (ending_ && now >= kill_at_ && command_ > 0) kill_tree();
}

Deadline Supervisor::next_deadline(Deadline now) const {
  Deadline next = kNever;
  if (!loss_) next = std::min(next, margins_.term_at(context_.page.lease_end()));
  if (!loss_ && spec_.max_hold && !max_hold_over_) {
    next = std::min(next, after(granted_at_, *spec_.max_hold));
  }
  if (!loss_ && !keeper_) next = std::min(next, keeper_starts_at());
  if (ending_) next = std::min(next, now < kill_at_ ? kill_at_ : after(now, kSweepAgain));
  return next;
}

void Supervisor::start_command() {
  CommandSpec command;
  command.argv = spec_.argv;
  command.process_group = context_.process_group;
  command.environment = {{"DLOCK_KEY", spec_.key},
                         {"DLOCK_TOKEN", owner_id_},
                         {"DLOCK_FENCE", fence_ ? std::to_string(*fence_) : ""}};
  Spawned spawned = spawn(command, context_.inherited);
  if (spawned.pid < 0) {
    exec_error_ = errno;
    util::log(Level::error, "cannot start " + spec_.argv.front() + ": fork: " + strerror(errno));
    return;
  }
  command_ = spawned.pid;
  exec_result_ = std::move(spawned.exec_result);
}

void Supervisor::read_exec_result() {
  int error = 0;
  ssize_t got;
  do {
    got = read(exec_result_.get(), &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  exec_result_.reset();
  if (got == static_cast<ssize_t>(sizeof(error))) exec_error_ = error;
  context_.inherited.drop();
}

void Supervisor::on_signal(to_supervisor::Signal signal) {
  if (command_ < 0) {
    if (refused_by_ == 0) refused_by_ = signal.number;
    return;
  }
  if (ends_jobs(signal.number)) ending_signal_seen_ = true;
  if (signal.from_terminal) return;
  if (ends_jobs(signal.number) || reaped_) {
    signal_tree(signal.number);
  } else {
    kill(command_, signal.number);  // our child and not reaped: the number is still its own
  }
}

void Supervisor::read_link() {
  while (const auto message = link_.receive()) {
    if (const auto* signal = std::get_if<to_supervisor::Signal>(&*message)) {
      on_signal(*signal);
    } else if (command_ < 0 && refused_by_ == 0 && !loss_) {
      start_command();
    }
  }
  if (link_.closed() && !front_gone_) {
    front_gone_ = true;
    begin_end(Clock::now(), Millis{0});
  }
}

// True when nothing is left to watch.
bool Supervisor::finished() {
  if (command_ < 0) return refused_by_ != 0 || loss_ || front_gone_ || exec_error_ != 0;
  const Reaped reaped = reap(reaped_ ? -1 : command_);
  if (reaped.pid > 0) {
    reaped_ = true;
    status_ = reaped.status;
    if (exec_result_) read_exec_result();
  }
  tree_gone_ = reaped.none_left;
  if (tree_gone_) return true;
  if (!reaped_ || ending_) return false;
  if (WIFSIGNALED(status_) || ending_signal_seen_) {
    begin_end(Clock::now(), spec_.kill_after);
    return false;
  }
  if (spec_.leftovers == Leftovers::kill) begin_end(Clock::now(), spec_.kill_after);
  return spec_.leftovers == Leftovers::ignore;
}

void Supervisor::watch() {
  for (;;) {
    const Deadline now = Clock::now();
    look_at_clock(now);
    if (finished()) return;
    const int lost = keeper_ && !loss_ ? keeper_->lost_fd() : -1;
    const int link = link_.closed() ? -1 : link_.fd();
    std::array<pollfd, 4> fds{{{children_.get(), POLLIN, 0},
                               {link, POLLIN, 0},
                               {lost, POLLIN, 0},
                               {exec_result_.get(), POLLIN, 0}}};
    util::poll(fds, next_deadline(now));
    if (fds[0].revents != 0) {
      signalfd_siginfo info{};
      (void)!read(children_.get(), &info, sizeof(info));
    }
    if (fds[3].revents != 0) read_exec_result();
    if (fds[1].revents != 0) {
      look_at_clock(Clock::now());  // never start a command after the end of the lease
      read_link();
    }
  }
}

Outcome Supervisor::outcome() const {
  Outcome out;
  if (loss_) {
    out.name = "lost";
    out.exit_status = exit_status::kLost;
    out.reason = loss_->message;
  } else if (front_gone_) {
    out.name = "error";
    out.exit_status = exit_status::kInternal;
    out.reason = "dlock was killed; the command was ended";
  } else if (refused_by_ != 0) {
    out.name = "signalled";
    out.exit_status = exit_status::kSignalBase + refused_by_;
    out.reason =
        "ended by signal " + std::to_string(refused_by_) + " before the command was started";
  } else if (exec_error_ != 0) {
    const bool missing = exec_error_ == ENOENT || exec_error_ == ENOTDIR;
    out.name = "not-started";
    out.exit_status = missing ? exit_status::kNotFound : exit_status::kNotExecutable;
    if (command_ < 0) out.exit_status = exit_status::kInternal;
    out.reason = spec_.argv.front() + ": " + strerror(exec_error_);
    if (exec_error_ == ENOEXEC) out.reason += " (a script needs a #! line)";
  } else if (!reaped_) {
    out.name = "error";
    out.exit_status = exit_status::kInternal;
    out.reason = "the command was not started";
  } else if (max_hold_over_) {
    out.name = "max-hold";
    out.exit_status = exit_status::kMaxHold;
    out.reason = "the command ran for longer than --max-hold";
  } else if (WIFSIGNALED(status_)) {
    out.name = "signalled";
    out.exit_status = exit_status::kSignalBase + WTERMSIG(status_);
    out.reason = "the command died of signal " + std::to_string(WTERMSIG(status_));
  } else {
    out.name = "completed";
    out.exit_status = WEXITSTATUS(status_);
  }
  return out;
}

void Supervisor::report(const Outcome& outcome) const {
  if (outcome.name == "busy") {
    util::log(Level::warning, outcome.reason);  // -q: the exit status says it
  } else if (outcome.name == "not-started" || outcome.name == "unreachable" ||
             outcome.name == "denied" || (outcome.name == "error" && granted_at_ == kNever)) {
    util::log(Level::error, outcome.reason);
  } else if (front_gone_ && command_ > 0) {
    util::log(Level::error, "dlock (pid " + std::to_string(context_.front) +
                                ") was killed; ended " + spec_.argv.front() + " and released " +
                                quoted(spec_.key));
  }
}

void Supervisor::name_leftovers() const {
  std::string names;
  for (const Process& process : descendants()) {
    if (!names.empty()) names += ", ";
    if (names.size() > 200) {
      names += "...";
      break;
    }
    names += process.name + " (pid " + std::to_string(process.pid) + ')';
  }
  if (names.empty()) return;
  util::log(Level::warning,
            spec_.argv.front() + " left running without the lock: " + names + " (see --leftovers)");
}

std::unique_ptr<Lease> Supervisor::take_lease() {
  if (!keeper_) return std::move(lease_);
  return keeper_->stop(std::min(context_.page.lease_end(), after(Clock::now(), Millis{2'000})));
}

void Supervisor::give_up_lock(Outcome& outcome) {
  const std::unique_ptr<Lease> lease = take_lease();
  if (!lease || loss_is_certain_) return;
  const Deadline lease_end = context_.page.lease_end();
  const Deadline until =
      lease_end == kNever ? after(Clock::now(), context_.target.connect_timeout) : lease_end;
  for (bool first = true;; first = false) {
    const Deadline now = Clock::now();
    if (now >= until) break;
    // The first try is not to be cut short by the second of two signals that ended the job.
    const Cancel cancel = first || front_gone_ ? Cancel() : Cancel(link_.fd());
    const auto released =
        lease->release(std::min(until, after(now, context_.target.connect_timeout)), cancel);
    if (released) return;
    if (released.error().code == Errc::lost) {
      // Not found after a try whose answer got lost: that try did it.
      if (!first || loss_) return;
      loss_ = released.error();
      util::log(Level::error, "lost " + quoted(spec_.key) + " before " + spec_.argv.front() +
                                  " had ended: " + loss_->message);
      outcome = this->outcome();
      return;
    }
    if (first) {
      util::log(Level::warning,
                "cannot release " + quoted(spec_.key) + ": " + released.error().message);
    }
    if (!first && cancel.requested()) break;
    util::wait_readable(front_gone_ || first ? -1 : link_.fd(),
                        std::min(until, after(Clock::now(), kReleaseAgain)));
  }
  const Millis left = lease_end == kNever ? Millis{0} : remaining(lease_end);
  util::log(Level::warning, quoted(spec_.key) + " was not released; it ends by itself" +
                                (left > Millis{0} ? " in " + util::format_duration(left) : ""));
}

bool Supervisor::stays_behind(const Outcome& outcome) const {
  return command_ > 0 && exec_error_ == 0 && !loss_ && outcome.name != "not-started" &&
         Clock::now() < after(granted_at_, spec_.min_hold);
}

// --min-hold: the caller has its exit status, the lock is kept for the rest of the time.
void Supervisor::stay_behind() {
  const Deadline until = after(granted_at_, spec_.min_hold);
  if (context_.page.lease_end() != kNever && context_.page.lease_end() >= until) _exit(0);
  util::log_flush();
  context_.inherited.drop();
  dup2(STDIN_FILENO, STDERR_FILENO);  // /dev/null by now
  if (!keeper_) start_keeper();
  for (;;) {
    const Deadline lease_end = context_.page.lease_end();
    const Deadline now = Clock::now();
    if (now >= lease_end || (now >= until && lease_end == kNever)) break;
    if (lease_end != kNever && lease_end >= until) _exit(0);  // what is left of the lease suffices
    if (keeper_->loss()) _exit(0);
    util::wait_readable(keeper_->lost_fd(),
                        std::min({until, lease_end, after(now, spec_.ttl / 3)}));
  }
  Outcome unused;
  give_up_lock(unused);
  _exit(0);
}

void Supervisor::run() {
  setpgid(0, 0);  // out of reach of the terminal, so that the lease is renewed while the job sleeps
  become_subreaper();
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  children_.reset(signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));

  Outcome result;
  auto error = children_ ? acquire() : Error{Errc::cancelled, strerror(errno)};
  const Deadline answered = Clock::now();
  if (blocked_messages_ > 0) util::log_after_status_line();
  if (!error) {
    util::log(Level::detail, "acquired " + quoted(spec_.key) +
                                 (fence_ ? " with fencing token " + std::to_string(*fence_) : "") +
                                 " from " + backend_->location());
    watch();
    result = outcome();
    result.held = std::chrono::duration_cast<Millis>(Clock::now() - granted_at_);
    if (!tree_gone_ && command_ > 0) name_leftovers();
  } else if (error->code == Errc::cancelled && children_) {
    read_link();
    result = outcome();
  } else {
    result = not_acquired(*error, spec_.conflict_status);
  }
  context_.page.guarded = false;
  report(result);
  const bool stays = lease_ || keeper_ ? stays_behind(result) : false;
  if (!stays && granted_at_ != kNever) give_up_lock(result);

  result.backend = backend_ ? backend_->location() : context_.target.url.redacted();
  result.fence = fence_;
  result.waited = std::chrono::duration_cast<Millis>(answered - context_.started);
  context_.status_file.write(spec_.key, result);
  link_.send(to_front::Ended{result.exit_status, stays});
  if (stays) stay_behind();
  util::log_flush();
  _exit(0);
}

}  // namespace

void supervise(const RunContext& context, SupervisorEnd link) {
  Supervisor(context, std::move(link)).run();
}

}  // namespace dlock
