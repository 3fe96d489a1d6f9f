// Handing out.  The launcher prints what was granted and says "go".  Until then the locks are as
//   those of a waiter: if the launcher ends, they are released.  From "go" on the script relies on
//   them, unless the launcher is killed before it returns: then the script sees a failure.
// Two processes.  This one renews.  A second one, the guard, is forked before any library is
//   initialised, and has copies of the descriptors that keep a kernel lock.  Each learns of the end
//   of the other through the socket between them, and ends the script.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/acquisition.hpp"
#include "engine/describe.hpp"
#include "engine/processes.hpp"
#include "engine/run_events.hpp"
#include "engine/supervision.hpp"
#include "process/proc.hpp"
#include "util/fd.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"
#include "util/process_title.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

using util::in_quotes;
using util::Level;

// While it releases one lock, this process does not look at the other locks.
constexpr Millis kReleasing{2'000};

// A shell that reads $(dlock acquire ... 2>&1) waits until every process has closed the pipe.  So a
// pipe stays open only if the script writes to it, too.  `fd` is stderr, or the descriptor of
// --event-log.  Its other descriptors do not count: one is the end from which the shell reads.
bool may_keep(int fd, pid_t script) {
  struct stat ours {};
  if (fstat(fd, &ours) != 0) return false;
  if (!S_ISFIFO(ours.st_mode) && !S_ISSOCK(ours.st_mode)) return true;
  for (const int other : {fd, STDERR_FILENO, STDOUT_FILENO}) {
    struct stat its {};
    if (stat(proc::path_of("/proc/%d/fd/%d", script, other).data(), &its) == 0 &&
        util::is_same_file(ours, its)) {
      return true;
    }
  }
  return false;
}

class AcquireSupervisor {
 public:
  AcquireSupervisor(const RunContext& context, SupervisorEnd link, std::optional<Script> script)
      : context_(context), spec_(context.spec), link_(std::move(link)), script_(std::move(script)) {
    if (!script_) return;
    leaves_stderr_ = !may_keep(STDERR_FILENO, script_->pid());
    const auto log = util::descriptor_named_by(spec_.event_log);
    leaves_event_log_ = log && !may_keep(*log, script_->pid());
  }

  [[noreturn]] void run();

 private:
  bool start_guard();
  void leave_descriptors() const;
  int acquire();
  void put_on_page();
  std::optional<std::pair<int, std::string>> objection(Deadline until);
  int hand_out();
  int give_back(int status, const std::string& why);
  [[noreturn]] void finish(int status);

  void stay();
  void release_one(const std::string& key);
  void count_on_no_lock();
  void lose(const HeldLocks::Loss& loss, Deadline now);
  void look_at_locks(Deadline now);
  void look_at_guard(Deadline now);
  void look_at_launcher();
  void release_all();
  std::string keys() const { return keys_in_words(spec_.keys); }

  const RunContext& context_;
  const RunSpec& spec_;
  SupervisorEnd link_;
  std::optional<Script> script_;
  Acquisition acquisition_{context_, link_};
  HeldLocks locks_;
  Margins margins_{spec_.kill_after};
  bool leaves_stderr_ = false;
  bool leaves_event_log_ = false;
  pid_t guard_ = -1;
  Fd launchers_life_ = proc::pidfd_of(context_.launcher);  // none once it has ended
  SupervisorEnd guard_link_{Fd()};
  Outcome end_;                                // for the event log
  std::vector<HeldLocks::Loss> early_losses_;  // before the script relied on the locks
  StuckReport stuck_;
};

void AcquireSupervisor::leave_descriptors() const {
  if (leaves_stderr_) util::log_end();
  if (leaves_event_log_) context_.event_log.close();
}

// False, with errno set, if the system refuses.
bool AcquireSupervisor::start_guard() {
  auto link = make_link(context_.page);
  if (!link) return false;
  const pid_t self = getpid();
  guard_ = fork();
  if (guard_ < 0) return false;
  if (guard_ == 0) {
    util::log_forget();
    leave_descriptors();
    link_.close();
    link->supervisor.reset();
    context_.held_by_supervisor.reset();
    // If this process starts late, the script may rely on the locks already.
    if (getppid() != self && !context_.page.kept) _exit(0);
    guard(context_, LauncherEnd(std::move(link->launcher)), std::move(*script_), self);
  }
  script_->spare(guard_);
  wake_at_end_of(link->supervisor.get());
  guard_link_ = SupervisorEnd(std::move(link->supervisor));
  return true;
}

void AcquireSupervisor::put_on_page() {
  for (std::size_t i = 0; i < spec_.keys.size(); ++i) {
    const HeldLock& lock = *locks_.find(spec_.keys[i]);
    GrantOnPage& grant = context_.page.grants.at(i);
    grant.token = {};
    lock.owner_id().copy(grant.token.data(), grant.token.size() - 1);
    grant.fence = lock.fence().value_or(0);
    grant.slot = lock.slot().value_or(0);
  }
  margins_.kill_after = acquisition_.kill_after();
  note_grant(context_, locks_, margins_);
  log_acquired(context_, locks_);
}

// If a lock was not acquired, or not handed out, says why.  Returns the exit status.
int AcquireSupervisor::acquire() {
  auto held = acquisition_.run();
  if (acquisition_.has_told()) util::log_beside_status_line(false);
  if (held) {
    locks_ = std::move(*held);
    put_on_page();
    return hand_out();
  }
  if (held.error().code != Errc::cancelled) {
    const Outcome outcome = not_acquired(held.error(), spec_.conflict_status);
    util::log(outcome.name == "busy" ? Level::warning : Level::error, outcome.reason);
    end_ = outcome;
    return outcome.exit_status;
  }
  const auto message = link_.receive();
  return message ? exit_status::kSignalBase + message->signal : exit_status::kInternal;
}

int AcquireSupervisor::give_back(int status, const std::string& why) {
  Error error{status == exit_status::kUnreachable ? Errc::unreachable : Errc::lost,
              why + "; released " + keys()};
  if (!why.empty()) {
    util::log(Level::error, with_origin(std::move(error), context_.target).message);
  }
  end_.reason = why;
  (void)locks_.release(Cancel(link_.fd()));
  return status;
}

// Why the locks must not be handed out, and the exit status; none if they may be.
std::optional<std::pair<int, std::string>> AcquireSupervisor::objection(Deadline until) {
  const Deadline now = Clock::now();
  if (script_) {
    (void)guard_link_.receive();
    if (guard_link_.closed()) return {{exit_status::kInternal, "a process of dlock was killed"}};
    if (script_->has_ended()) return {{exit_status::kInternal, script_->in_words() + " has ended"}};
  }
  for (auto& loss : locks_.check(now)) {
    note_loss(context_, loss.key);
    early_losses_.push_back(std::move(loss));
  }
  if (!early_losses_.empty()) {
    const HeldLocks::Loss& first = early_losses_.front();
    return {{exit_status::kUnreachable,
             "lost " + in_quotes(first.key) + " at once: " + first.error.message}};
  }
  if (now < until) return std::nullopt;
  return {{exit_status::kBusy, launcher_was_suspended()}};
}

int AcquireSupervisor::hand_out() {
  const Deadline until = after(Clock::now(), kLauncherAnswers);
  if (const auto why = objection(until)) return give_back(why->first, why->second);
  if (!locks_.send_lock_fds(guard_link_) || !link_.send({ToLauncher::Kind::granted})) {
    return give_back(
        exit_status::kInternal,
        std::string("cannot tell the other process of dlock: ") + std::strerror(errno));
  }
  for (;;) {
    // Once the launcher has begun to hand out, it answers for the locks; the leases are kept.
    const auto why = objection(until);
    const bool is_open = context_.page.hand_out == HandOut::open;
    if (why && is_open && context_.page.decide(HandOut::withdrawn)) {
      return give_back(why->first, why->second);
    }
    if (const auto message = link_.receive()) {
      if (message->kind != ToSupervisor::Kind::go) {
        const bool is_begun = context_.page.hand_out == HandOut::begun;  // writing to stdout failed
        return give_back(is_begun ? exit_status::kNo : exit_status::kSignalBase + message->signal,
                         "");
      }
      // The launcher has not returned yet.  If the script must end, stay() does that.
      const bool goes_on = !script_ || spec_.on_lost == OnLost::ignore;
      if (early_losses_.empty() || !goes_on) return 0;
      return give_back(exit_status::kUnreachable,
                       "lost " + in_quotes(early_losses_.front().key) +
                           " before its lock id was read: " + early_losses_.front().error.message);
    }
    if (link_.closed()) return give_back(exit_status::kInternal, "dlock itself was killed");
    std::vector<pollfd> fds{{link_.fd(), POLLIN, 0},
                            {is_open ? guard_link_.fd() : -1, POLLIN, 0},
                            {is_open && script_ ? script_->fd() : -1, POLLIN, 0}};
    locks_.add_lost_fds(fds);
    util::poll(fds, std::min(is_open ? until : kNever, locks_.next_deadline()));
  }
}

// Tells the launcher the exit status.  A lock that was handed out ends later.
void AcquireSupervisor::finish(int status) {
  const bool is_signal = status > exit_status::kSignalBase;
  if (end_.name.empty()) end_.name = status == 0 ? "completed" : is_signal ? "signalled" : "error";
  end_.exit_status = status;
  end_.killed = link_.closed() || (guard_ > 0 && guard_link_.closed());
  end_.is_returned = status != 0 && !link_.closed();
  end_.waited = since(context_.started);
  end_.other = acquisition_.other();
  if (status != 0) log_end(context_, end_);
  context_.page.exit_status = status;
  context_.page.left_behind = context_.page.kept.load();
  context_.page.ended = true;
  link_.close();
  if (context_.page.kept) stay();
  util::log_flush();
  _exit(0);
}

// Another process gave the lock back.  If only this process can release it, that process waits.
void AcquireSupervisor::release_one(const std::string& key) {
  if (locks_.all().size() == 1) count_on_no_lock();
  locks_.release_one(key, after(Clock::now(), kReleasing));
  log_end(context_, key, end_);
}

void AcquireSupervisor::count_on_no_lock() { context_.page.guarded = context_.page.kept = false; }

void AcquireSupervisor::lose(const HeldLocks::Loss& loss, Deadline now) {
  if (loss.error.in_order) {
    util::log(Level::detail, loss.error.message);
    return release_one(loss.key);
  }
  const bool is_first = end_.name != "lost";
  end_.name = "lost";
  end_.reason = loss.error.message;
  const bool holds_none = locks_.lost_keys().size() == locks_.all().size();
  if (spec_.on_lost == OnLost::ignore && holds_none) count_on_no_lock();
  end_after_loss(context_, loss, is_first, margins_, *script_, now);
}

void AcquireSupervisor::look_at_locks(Deadline now) {
  for (const auto& loss : std::exchange(early_losses_, {})) lose(loss, now);
  for (const auto& loss : locks_.check(now)) lose(loss, now);
}

// The locks are renewed until the script has ended.
void AcquireSupervisor::look_at_guard(Deadline now) {
  (void)guard_link_.receive();
  if (!guard_link_.closed() || script_->is_ending() || !context_.page.kept) return;
  log_ending(context_, script_->end(after(now, margins_.kill_after), now), "killed");
  end_.killed = true;
  util::log(Level::error, "the 2nd process that kept " + keys() + " (pid " +
                              std::to_string(guard_) + ") was killed; ending " +
                              script_->in_words());
}

void AcquireSupervisor::look_at_launcher() {
  if (!launchers_life_ || !proc::has_ended(launchers_life_)) return;
  launchers_life_.reset();
  if (context_.page.hand_out == HandOut::done) return;
  count_on_no_lock();
  end_.killed = true;
  (void)give_back(
      0, "dlock (pid " + std::to_string(context_.launcher) + ") was killed before it returned");
}

void AcquireSupervisor::release_all() {
  auto failures = locks_.release(Cancel());
  std::erase_if(failures, [](const HeldLocks::Loss& loss) { return loss.error.in_order; });
  if (const auto lost = say_lost_before_the_end(context_, failures, script_->in_words())) {
    end_.name = "lost";
    end_.reason = lost->message;
  }
}

void AcquireSupervisor::stay() {
  leave_descriptors();
  for (;;) {
    const Deadline now = Clock::now();
    look_at_locks(now);
    look_at_guard(now);
    look_at_launcher();
    if (locks_.empty() || script_->advance(now)) break;
    stuck_.say_if_stuck(context_, *script_, locks_.lost_keys());
    std::vector<pollfd> fds{{script_->is_ending() ? -1 : script_->fd(), POLLIN, 0},
                            {guard_link_.fd(), POLLIN, 0},
                            {launchers_life_.get(), POLLIN, 0}};
    locks_.add_lost_fds(fds);
    util::poll(fds, std::min(locks_.next_deadline(), script_->next_deadline(now)));
  }
  count_on_no_lock();
  release_all();
  log_end(context_, end_);
}

void AcquireSupervisor::run() {
  context_.inherited.drop();
  raise_descriptor_limit();
  setsid();
  // A stopped supervisor wakes up when the launcher is killed, and gives up.
  prctl(PR_SET_PDEATHSIG, SIGCONT);
  if (script_) {
    if (!start_guard()) {
      util::log(Level::error, std::string("cannot start a process: ") + std::strerror(errno));
      finish(exit_status::kInternal);
    }
    // After the fork: there is room for one title.
    util::set_process_title(std::string(util::kKeeperName) + " for pid " +
                            std::to_string(script_->pid()));
  }
  int status = acquire();
  if (status != 0) finish(status);
  if (!script_) {
    locks_ = HeldLocks();  // this ends no lease
    finish(0);
  }
  context_.page.guarded = spec_.on_lost != OnLost::ignore;
  context_.page.kept = true;
  (void)guard_link_.send({ToLauncher::Kind::granted});  // wakes it to watch the lease
  finish(0);
}

}  // namespace

void supervise_script(const RunContext& context, SupervisorEnd link,
                      std::optional<Script> script) noexcept {
  AcquireSupervisor(context, std::move(link), std::move(script)).run();
}

}  // namespace dlock
