#include "reentry/reenter.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/patience.hpp"
#include "process/proc.hpp"
#include "reentry/protocol.hpp"
#include "util/local_socket.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

using namespace reentry;
using util::is_of_our_user_or_root;

constexpr std::size_t kAddressLength = 32;
constexpr int kAgainMs = 20;
constexpr const char* kNoAnswer = "no answer; is its supervisor stopped?";

Below is_above_us_there(int socket) {
  const auto peer = util::peer_of(socket);
  return peer ? above_us(peer->pid) : Below::no;
}

Error not_held_any_more() {
  return {Errc::lost, "the outer run lost it, was killed, or reached its --max-hold"};
}

Error cannot_borrow(const LockInfo& lock, const std::string& why) {
  return {Errc::unreachable,
          "cannot borrow " + util::in_quotes(lock.key) + " from the outer run: " + why};
}

class BorrowedLease final : public Lease {
 public:
  BorrowedLease(Fd outer_run, std::string key)
      : outer_run_(std::move(outer_run)), key_(std::move(key)) {}

  /// Whether the outer run holds the lock of this owner.  Errc::lost if it closed the connection,
  /// Errc::unreachable if it did not answer.
  Result<bool> ask_for(const LockInfo::Holder& holder, Deadline deadline) {
    const std::size_t size = holder.owner.id.size();
    if (size == 0 || size > Question().owner_id.size()) return false;  // the holder has no record
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
  // When it is asked, the last renewal of the outer run is up to a third of the ttl old.
  std::optional<Millis> granted_ttl() const override {
    return valid_until_ == kNever ? std::nullopt : std::optional(ttl_ * 2 / 3);
  }
  Result<void> end_command(Deadline, Deadline, Cancel) override { return {}; }
  int event_fd() override { return outer_run_.get(); }
  // The outer run keeps the lock while the connection is open; the others do if it is killed.
  std::vector<int> lock_fds() const override {
    std::vector<int> out{outer_run_.get()};
    for (const Fd& fd : lock_fds_) out.push_back(fd.get());
    return out;
  }

  Result<void> renew(Deadline deadline, Cancel cancel) override { return ask(deadline, cancel); }

  Result<void> release(Deadline, Cancel) override {
    lock_fds_.clear();
    shutdown(outer_run_.get(), SHUT_RDWR);  // even if there are copies
    return {};
  }

 private:
  Result<void> ask(Deadline deadline, Cancel cancel);

  Fd outer_run_;
  std::string key_;
  std::vector<Fd> lock_fds_;  // copies of those of the outer run's lease
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
  // Even if the connection has ended, there may be an answer to read.
  (void)util::send_datagram(outer_run_.get(), &question, sizeof(question));
  for (;;) {
    Answer answer;
    std::vector<Fd> lock_fds;
    const ssize_t got =
        util::receive_datagram(outer_run_.get(), &answer, sizeof(answer), &lock_fds);
    if (got < 0 && errno == EAGAIN) {
      std::array<pollfd, 2> fds{{{outer_run_.get(), POLLIN, 0}, {cancel.fd(), POLLIN, 0}}};
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
    if (!lock_fds.empty()) lock_fds_ = std::move(lock_fds);
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

// If a lock file was overwritten, or was locked by flock(1), only the holder's process is known.
bool is_above_us(const LockInfo::Holder& holder) {
  return holder.owner.id.empty() && above_us(static_cast<pid_t>(holder.owner.pid)) == Below::yes;
}

// A run above this one, as DLOCK_SUPERVISORS names it.
struct RunAbove {
  std::string_view address;  // none: it cannot listen
  std::vector<std::string_view> owner_ids;

  bool may_hold(const LockInfo& lock) const {
    return std::ranges::any_of(lock.holders, [&](const auto& holder) {
      return std::ranges::find(owner_ids, holder.owner.id) != owner_ids.end();
    });
  }
};

// Returns the nearest run first.
std::vector<RunAbove> runs_in(std::string_view list) {
  std::vector<RunAbove> out;
  std::vector<std::string_view> held_there;
  while (!list.empty()) {
    const auto at = list.rfind(kSeparator);
    const std::string_view last = at == std::string_view::npos ? list : list.substr(at + 1);
    list = at == std::string_view::npos ? std::string_view() : list.substr(0, at);
    if (last.starts_with(kHeldThere)) {
      held_there.push_back(last.substr(1));
    } else if (last.starts_with(kCannotListen)) {
      out.push_back({.address = {}, .owner_ids = {last.substr(1)}});
    } else if (last.size() == kAddressLength) {
      out.push_back({.address = last, .owner_ids = std::exchange(held_there, {})});
    }
  }
  return out;
}

// Null: that run does not hold the lock, or must not be believed.
Result<std::unique_ptr<BorrowedLease>> ask_run(const RunAbove& run, const LockInfo& lock,
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
    Fd outer_run = util::connect_locally(run.address, deadline);
    if (!outer_run) {
      const int error = errno;
      if (error == ECONNREFUSED) return none;
      return cannot_borrow(lock, error == EAGAIN ? kNoAnswer : std::strerror(error));
    }
    const Below above = is_above_us_there(outer_run.get());
    if (!is_of_our_user_or_root(outer_run.get()) && above != Below::yes) return none;
    auto out = std::make_unique<BorrowedLease>(std::move(outer_run), lock.key);
    Result<bool> lent = false;
    for (const LockInfo::Holder& holder : lock.holders) {
      lent = out->ask_for(holder, deadline);
      if (!lent || lent.value()) break;
    }
    if (lent && lent.value()) return out;
    if (lent || above == Below::no) return none;
    const bool closed = lent.error().code == Errc::lost;
    if (!closed || Clock::now() >= deadline) return cannot_borrow(lock, lent.error().message);
    // If the outer run has ended, the next try is refused.  Else it had no descriptor left.
    ::poll(nullptr, 0, kAgainMs);
  }
}

}  // namespace

Result<std::unique_ptr<Lease>> reenter(Backend& backend, const Request& request, const Wait& wait,
                                       Millis connect_timeout) {
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
    auto lease = ask_run(run, lock, deadline);
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
