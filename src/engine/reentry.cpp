// Who may borrow.  Neither pids nor names nor a token in the environment prove that a run is below
//   the holder: two containers may have the same pids and host name, at(1) and tmux(1) copy the
//   environment.  The kernel says which process has connected (SO_PEERCRED); the lender looks for
//   itself among the ancestors of that process.  If /proc does not show them, the lender says so,
//   and the borrower fails: if it waited for the lock, it might wait for its own job.
// Who may lend.  The addresses of a run that has ended stay in environments, and another user may
//   listen there.  So an address stands there with the owner ids of its run, and is asked only for
//   a lock with one of these; and the borrower accepts a lender of its own user, of root, or above
//   itself.
// Loss.  A borrower is a holder like any other: it renews its lease by asking the lender again, and
//   ends its job before the lease is over if the lender does not answer.  So a stopped lender is
//   noticed, too.  An answer names the time that is left; the borrower counts from the instant at
//   which it asked, which comes back with the answer, so a late one is not taken for a new one.
// Without a socket.  A service manager may forbid local sockets (RestrictAddressFamilies).  A run
//   that cannot listen leaves its owner id instead of an address: it holds the lock and cannot lend
//   it, and a nested run that finds this id on the lock fails.
// End of the borrower.  Its front has a copy of the connection, as it has of a witness: a borrower
//   whose supervisor is killed has ended when its front has killed the job.
// Death of the lender.  Where the kernel keeps the lock, the borrower gets a copy of the witness:
//   the lock is kept until the borrower has ended.  Elsewhere its ttl runs on.

#include "engine/reentry.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/key.hpp"
#include "core/patience.hpp"
#include "engine/proc.hpp"
#include "util/local_socket.hpp"
#include "util/poll.hpp"
#include "util/random_id.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

constexpr const char* kVariable = "DLOCK_SUPERVISORS";
constexpr char kSeparator = ':';
constexpr std::size_t kAddressLength = 32;
// Of those above a run.  A job that starts itself again by at(1) adds one each time.  Linux takes
// 128 KiB, and one run needs 2.
constexpr std::size_t kMostAbove = 98'304;     // bytes
constexpr std::size_t kMostConnections = 512;  // what a job can take of our descriptors
constexpr int kBacklog = 64;
// Before an owner id: of the run whose address stands before it, or of one that has none.
constexpr char kHeldThere = '+';
constexpr char kCannotLend = '-';
constexpr int kAgainMs = 20;
constexpr Millis kListensAgain{500};
constexpr int kMostAtOnce = 16;  // so that nobody keeps the supervisor from its other work

// The key, or an owner id that somebody has copied to another lock would be lent there.  Earlier
// versions ask without it, and cut it off: a job can outlive an upgrade.
struct Question {
  std::array<char, 32> owner_id{};
  Deadline::rep asked_at = 0;  // the borrower's clock
  std::array<char, kMaxKeyLength + 1> key{};

  Question() = default;
  Question(std::string_view its_owner_id, std::string_view its_key) {
    its_owner_id.copy(owner_id.data(), owner_id.size());
    its_key.copy(key.data(), kMaxKeyLength);
  }
  bool asks_for(const Loan& loan) const {
    const Question other(loan.owner_id, loan.key);
    return owner_id == other.owner_id && (key == other.key || key.front() == '\0');
  }
};
constexpr auto kQuestionWithoutKey = static_cast<ssize_t>(offsetof(Question, key));

struct Answer {
  static constexpr Millis::rep kNotHeld = 0;
  static constexpr Millis::rep kForEver = -1;
  static constexpr Millis::rep kUnproved = -2;  // it cannot be seen whether the borrower is below
  Deadline::rep asked_at = 0;                   // that of the question
  Millis::rep left_ms = kNotHeld;
  Millis::rep ttl_ms = 0;
};

using util::is_of_our_user_or_root;
using util::peer_of;

Below is_lender_above_us(int socket) {
  const auto peer = peer_of(socket);
  return peer ? above_us(peer->pid) : Below::no;
}

// Null: it is not lent.
const Loan* find_loan(std::span<const Loan> loans, const Question& question) {
  const auto it = std::find_if(loans.begin(), loans.end(),
                               [&](const Loan& loan) { return question.asks_for(loan); });
  return it == loans.end() ? nullptr : &*it;
}

Answer make_answer(int socket, const Question& question, const Loan* loan) {
  Answer out;
  out.asked_at = question.asked_at;
  if (loan == nullptr) return out;
  const auto peer = peer_of(socket);
  const Below below = peer ? below_us(peer->pid) : Below::unknown;
  if (below == Below::no) return out;
  if (below == Below::unknown) {
    out.left_ms = Answer::kUnproved;
    return out;
  }
  out.left_ms = loan->valid_until == kNever
                    ? Answer::kForEver
                    : std::max(remaining(loan->valid_until).count(), Answer::kNotHeld);
  out.ttl_ms = loan->ttl.count();
  return out;
}

}  // namespace

bool Lender::open(std::span<const std::string> owner_ids) {
  const std::string id = util::random_id();
  listener_ = util::listen_locally(id, kBacklog);
  const bool is_forbidden =
      !listener_ && (errno == EAFNOSUPPORT || errno == EPERM || errno == EACCES);
  std::string address = is_forbidden ? "" : id;
  for (const std::string& owner_id : owner_ids) {
    if (!address.empty()) address += kSeparator;
    address += (is_forbidden ? kCannotLend : kHeldThere) + owner_id;
  }
  if (is_forbidden) {
    address_ = std::move(address);
    return true;
  }
  events_.reset(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{.events = EPOLLIN, .data = {.fd = listener_.get()}};
  if (!listener_ || !events_ ||
      epoll_ctl(events_.get(), EPOLL_CTL_ADD, listener_.get(), &event) != 0) {
    return false;
  }
  address_ = std::move(address);
  return true;
}

std::string Lender::addresses() const {
  const char* variable = std::getenv(kVariable);
  std::string_view above = variable != nullptr ? variable : "";
  if (above.size() > kMostAbove) {  // the nearest ones are the last
    above.remove_prefix(above.size() - kMostAbove);
    above.remove_prefix(std::min(above.find(kSeparator), above.size() - 1) + 1);
  }
  std::string out(above);
  if (!out.empty() && !address_.empty()) out += kSeparator;
  return out + address_;
}

bool Lender::has_borrowers() const {
  return std::any_of(connections_.begin(), connections_.end(),
                     [](const Connection& connection) { return !connection.borrowed.empty(); });
}

void Lender::recall_all_but(std::span<const Loan> loans) {
  for (const Connection& connection : connections_) {
    const std::string& borrowed = connection.borrowed;
    const bool is_lent = std::any_of(loans.begin(), loans.end(),
                                     [&](const Loan& loan) { return loan.owner_id == borrowed; });
    if (!borrowed.empty() && !is_lent) shutdown(connection.socket.get(), SHUT_WR);
  }
}

// While there is no descriptor for another connection, those that want one wait in the backlog, and
// must not keep us awake.
void Lender::listen(bool on) {
  if (!on) listens_at_ = after(Clock::now(), kListensAgain);
  if (std::exchange(listening_, on) == on) return;
  epoll_event event{.events = on ? std::uint32_t{EPOLLIN} : 0, .data = {.fd = listener_.get()}};
  epoll_ctl(events_.get(), EPOLL_CTL_MOD, listener_.get(), &event);
}

void Lender::accept_some() {
  for (int i = 0; i < kMostAtOnce; ++i) {
    if (connections_.size() >= kMostConnections) return listen(false);
    Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)) return;
    if (!socket) return listen(false);
    if (!is_of_our_user_or_root(socket.get())) {
      const Answer no;
      (void)util::send_datagram(socket.get(), &no, sizeof(no));
      continue;
    }
    epoll_event event{.events = EPOLLIN, .data = {.fd = socket.get()}};
    if (epoll_ctl(events_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) continue;
    connections_.push_back({std::move(socket)});
  }
}

// False: it has ended, or is no dlock.
bool Lender::answer(Connection& connection, std::span<const Loan> loans) const {
  const int socket = connection.socket.get();
  Question question;
  const ssize_t got = util::receive_datagram(socket, &question, sizeof(question));
  if (got < 0 && errno == EAGAIN) return true;
  if (got != static_cast<ssize_t>(sizeof(question)) && got != kQuestionWithoutKey) return false;
  const Loan* const loan = find_loan(loans, question);
  const Answer answer = make_answer(socket, question, loan);
  const bool yes = answer.left_ms > 0 || answer.left_ms == Answer::kForEver;
  const auto witness = yes && connection.borrowed.empty() ? loan->witness : std::span<const int>();
  // After it was recalled it cannot be sent, and the borrower is one until it has ended.
  const bool sent = util::send_datagram(socket, &answer, sizeof(answer), witness);
  if (yes && sent) connection.borrowed = loan->owner_id;
  return sent || !connection.borrowed.empty();
}

bool Lender::serve(std::span<const Loan> loans) {
  if (Clock::now() >= next_deadline()) listen(true);
  std::array<epoll_event, kMostAtOnce> events{};
  const int count = events_ ? epoll_wait(events_.get(), events.data(), kMostAtOnce, 0) : 0;
  for (int i = 0; i < count; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    if (fd == listener_.get()) {
      accept_some();
      continue;
    }
    const auto ended = std::erase_if(connections_, [&](Connection& connection) {
      return connection.socket.get() == fd && !answer(connection, loans);
    });
    if (ended > 0) listen(true);
  }
  return count > 0;
}

namespace {

constexpr const char* kNoAnswer = "no answer; is its supervisor stopped?";

Error not_held_any_more() {
  return {Errc::lost, "the outer run lost it, was killed, or reached its --max-hold"};
}

Error cannot_borrow(const LockInfo& lock, const std::string& why) {
  return {Errc::unreachable,
          "cannot borrow " + util::in_quotes(lock.key) + " from the outer run: " + why};
}

class BorrowedLease final : public Lease {
 public:
  BorrowedLease(Fd lender, std::string key) : lender_(std::move(lender)), key_(std::move(key)) {}

  /// Whether the lender holds the lock of this owner, and thereby lends it.  Errc::lost if it
  /// closed the connection, Errc::unreachable if it did not say.
  Result<bool> ask_for(const LockInfo::Holder& holder, Deadline deadline) {
    if (holder.owner.id.size() != Question().owner_id.size()) return false;  // it has no record
    owner_id_ = holder.owner.id;
    fence_ = holder.fence;
    slot_ = holder.slot;
    const auto asked = ask(deadline, Cancel());
    if (asked) return true;
    if (refused_) return false;
    return asked.error();
  }

  const std::string& owner_id() const override { return owner_id_; }
  std::optional<std::uint64_t> fence() const override { return fence_; }
  std::optional<unsigned> slot() const override { return slot_; }
  Deadline valid_until() const override { return valid_until_; }
  // The lender has renewed its lease up to a third of the ttl before it is asked.
  std::optional<Millis> granted_ttl() const override {
    return valid_until_ == kNever ? std::nullopt : std::optional(ttl_ * 2 / 3);
  }
  Result<void> end_command(Deadline, Deadline, Cancel) override { return {}; }
  int event_fd() override { return lender_.get(); }
  // The lender keeps the lock for as long as a process has the connection.
  std::vector<int> witness_fds() const override { return {lender_.get()}; }

  Result<void> renew(Deadline deadline, Cancel cancel) override { return ask(deadline, cancel); }

  Result<void> release(Deadline, Cancel) override {
    witness_.clear();
    shutdown(lender_.get(), SHUT_RDWR);  // in spite of copies
    return {};
  }

 private:
  Result<void> ask(Deadline deadline, Cancel cancel);

  Fd lender_;
  std::string key_;
  std::vector<Fd> witness_;  // of the lender's lease, if that has one
  bool refused_ = false;
  std::string owner_id_;
  std::optional<std::uint64_t> fence_;
  std::optional<unsigned> slot_;
  Deadline valid_until_ = kNever;
  Millis ttl_{0};
};

Result<void> BorrowedLease::ask(Deadline deadline, Cancel cancel) {
  Question question(owner_id_, key_);
  question.asked_at = Clock::now().time_since_epoch().count();
  // If the connection is at its end, an answer may be there all the same.
  (void)util::send_datagram(lender_.get(), &question, sizeof(question));
  for (;;) {
    Answer answer;
    std::vector<Fd> witness;
    const ssize_t got = util::receive_datagram(lender_.get(), &answer, sizeof(answer), &witness);
    if (got < 0 && errno == EAGAIN) {
      std::array<pollfd, 2> fds{{{lender_.get(), POLLIN, 0}, {cancel.fd(), POLLIN, 0}}};
      if (util::poll(fds, deadline) == 0) {
        return Error{Errc::unreachable, kNoAnswer};
      }
      if (fds[1].revents != 0) return Error{Errc::cancelled, "cancelled"};
      continue;
    }
    if (got < 0) return Error{Errc::unreachable, std::strerror(errno)};
    if (got != static_cast<ssize_t>(sizeof(answer))) return not_held_any_more();
    if (answer.left_ms == Answer::kUnproved) {
      return Error{Errc::unreachable,
                   "it cannot find this process in /proc (hidepid, or another pid namespace?)"};
    }
    refused_ = answer.left_ms == Answer::kNotHeld;
    if (refused_) return not_held_any_more();
    if (!witness.empty()) witness_ = std::move(witness);
    ttl_ = Millis{answer.ttl_ms};
    if (answer.left_ms != Answer::kForEver) {
      valid_until_ = after(Deadline(Deadline::duration(answer.asked_at)), Millis{answer.left_ms});
    }
    if (answer.asked_at == question.asked_at) return {};
  }
}

std::string how(Mode mode, unsigned slots) {
  if (mode == Mode::slots) return "with --slots " + std::to_string(slots);
  return mode == Mode::shared ? "as --shared" : "exclusively";
}

Error would_wait_for_itself(const Request& request, const LockInfo& lock) {
  return {Errc::conflict, "this command runs inside a job that holds " +
                              util::in_quotes(request.key) + ' ' + how(lock.mode, lock.slots) +
                              ", so asking for it " + how(request.mode, request.slots) +
                              " would wait for ever; use the same mode in both"};
}

// Of a lock file that was written over, or locked by flock(1), only the process is known.
bool is_above_us(const LockInfo::Holder& holder) {
  return holder.owner.id.empty() && above_us(static_cast<pid_t>(holder.owner.pid)) == Below::yes;
}

// A run above this one, as DLOCK_SUPERVISORS names it.
struct RunAbove {
  std::string_view address;                 // none: it cannot lend
  std::vector<std::string_view> owner_ids;  // none: that of an earlier version tells none

  bool may_hold(const LockInfo& lock) const {
    return owner_ids.empty() || std::ranges::any_of(lock.holders, [&](const auto& holder) {
             return std::ranges::find(owner_ids, holder.owner.id) != owner_ids.end();
           });
  }
};

// The nearest first.
std::vector<RunAbove> runs_in(std::string_view list) {
  std::vector<RunAbove> out;
  std::vector<std::string_view> held_there;
  while (!list.empty()) {
    const auto at = list.rfind(kSeparator);
    const std::string_view last = at == std::string_view::npos ? list : list.substr(at + 1);
    list = at == std::string_view::npos ? std::string_view() : list.substr(0, at);
    if (last.starts_with(kHeldThere)) {
      held_there.push_back(last.substr(1));
    } else if (last.starts_with(kCannotLend)) {
      out.push_back({.address = {}, .owner_ids = {last.substr(1)}});
    } else if (last.size() == kAddressLength) {
      out.push_back({.address = last, .owner_ids = std::exchange(held_there, {})});
    }
  }
  return out;
}

// Null: that run holds none of them, or has no right to lend.
Result<std::unique_ptr<BorrowedLease>> borrow_from(const RunAbove& run, const LockInfo& lock,
                                                   Deadline deadline) {
  std::unique_ptr<BorrowedLease> none;
  if (!run.may_hold(lock)) return none;
  if (run.address.empty()) {
    return cannot_borrow(
        lock,
        "the outer run is not allowed to create Unix sockets (in a systemd unit, add "
        "AF_UNIX to RestrictAddressFamilies=)");
  }
  for (;;) {
    Fd lender = util::connect_locally(run.address, deadline);
    if (!lender) {
      const int error = errno;
      if (error == ECONNREFUSED) return none;
      return cannot_borrow(lock, error == EAGAIN ? kNoAnswer : std::strerror(error));
    }
    const Below above = is_lender_above_us(lender.get());
    if (!is_of_our_user_or_root(lender.get()) && above != Below::yes) return none;
    auto out = std::make_unique<BorrowedLease>(std::move(lender), lock.key);
    Result<bool> lent = false;
    for (const LockInfo::Holder& holder : lock.holders) {
      lent = out->ask_for(holder, deadline);
      if (!lent || lent.value()) break;
    }
    if (lent && lent.value()) return out;
    if (lent || above == Below::no) return none;
    const bool closed = lent.error().code == Errc::lost;
    if (!closed || Clock::now() >= deadline) return cannot_borrow(lock, lent.error().message);
    // If the lender has ended, nobody listens there from now on.  Else it had no descriptor left.
    ::poll(nullptr, 0, kAgainMs);
  }
}

}  // namespace

Result<std::unique_ptr<Lease>> borrow_lease(Backend& backend, const Request& request,
                                            const Wait& wait, Millis connect_timeout) {
  const char* const variable = std::getenv(kVariable);
  const auto runs = runs_in(variable != nullptr ? variable : "");
  if (runs.empty()) return std::unique_ptr<Lease>();
  Patience patience(wait, connect_timeout, request.key);
  auto info = backend.inspect(request.key, patience.call_until());
  while (!info) {
    if (const auto again = patience.pause(info.error()); !again) return again.error();
    info = backend.inspect(request.key, patience.call_until());
  }
  const LockInfo& lock = info.value();
  if (lock.holders.empty()) return std::unique_ptr<Lease>();
  const Deadline deadline = after(Clock::now(), connect_timeout);
  for (const RunAbove& run : runs) {
    auto lease = borrow_from(run, lock, deadline);
    if (!lease) return lease.error();
    if (!*lease) continue;
    if (lock.mode != request.mode || lock.slots != request.slots) {
      return would_wait_for_itself(request, lock);
    }
    return std::unique_ptr<Lease>(std::move(*lease));
  }
  const bool excludes = lock.mode == Mode::exclusive || request.mode != lock.mode;
  if (wait.until == kNever && excludes &&
      std::any_of(lock.holders.begin(), lock.holders.end(), is_above_us)) {
    return Error{Errc::unreachable,
                 "cannot borrow " + util::in_quotes(lock.key) +
                     ": a process above this one holds it, and there is no valid record that "
                     "names its owner; waiting for it would never end"};
  }
  return std::unique_ptr<Lease>();
}

}  // namespace dlock
