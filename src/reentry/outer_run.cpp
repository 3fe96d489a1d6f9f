#include "reentry/outer_run.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "process/proc.hpp"
#include "reentry/protocol.hpp"
#include "util/local_socket.hpp"
#include "util/random_id.hpp"

namespace dlock {
namespace {

using namespace reentry;
using util::is_of_our_user_or_root;
using util::peer_of;

// A job that restarts itself by at(1) adds a run each time.  Linux takes 128 KiB, a run needs 2.
constexpr std::size_t kMostAbove = 98'304;     // bytes
constexpr std::size_t kMostConnections = 512;  // the descriptors that a job can use up
constexpr int kBacklog = 64;
constexpr Millis kListensAgain{500};
constexpr int kMostAtOnce = 16;  // so that the supervisor gets to its other work

bool asks_for(const Question& question, const HeldLockOffer& offer) {
  const Question wanted(offer.owner_id, offer.key);
  return question.owner_id == wanted.owner_id && question.key == wanted.key;
}

// Null: the lock is not offered.
const HeldLockOffer* find_offer(std::span<const HeldLockOffer> offers, const Question& question) {
  const auto it = std::find_if(offers.begin(), offers.end(), [&](const HeldLockOffer& offer) {
    return asks_for(question, offer);
  });
  return it == offers.end() ? nullptr : &*it;
}

Answer make_answer(int socket, const Question& question, const HeldLockOffer* offer) {
  Answer out;
  out.asked_at = question.asked_at;
  if (offer == nullptr) return out;
  const auto peer = peer_of(socket);
  const Below below = peer ? below_us(peer->pid) : Below::unknown;
  if (below == Below::no) return out;
  if (below == Below::unknown) {
    out.left_ms = Answer::kUnproved;
    return out;
  }
  out.left_ms = offer->valid_until == kNever
                    ? Answer::kForEver
                    : std::max(remaining(offer->valid_until).count(), Answer::kNotHeld);
  out.ttl_ms = offer->ttl.count();
  return out;
}

}  // namespace

bool OuterRun::open(std::span<const std::string> owner_ids) {
  const std::string id = util::random_id();
  listener_ = util::listen_locally(id, kBacklog);
  const bool is_forbidden =
      !listener_ && (errno == EAFNOSUPPORT || errno == EPERM || errno == EACCES);
  address_ = is_forbidden ? "" : id;
  for (const std::string& owner_id : owner_ids) {
    if (!address_.empty()) address_ += kSeparator;
    address_ += (is_forbidden ? kCannotListen : kHeldThere) + owner_id;
  }
  if (is_forbidden) return true;
  events_.reset(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{.events = EPOLLIN, .data = {.fd = listener_.get()}};
  return listener_ && events_ &&
         epoll_ctl(events_.get(), EPOLL_CTL_ADD, listener_.get(), &event) == 0;
}

std::string OuterRun::addresses() const {
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

bool OuterRun::has_nested_runs() const {
  return std::any_of(connections_.begin(), connections_.end(),
                     [](const Connection& connection) { return !connection.borrowed.empty(); });
}

void OuterRun::recall_all_but(std::span<const HeldLockOffer> offers) {
  for (const Connection& connection : connections_) {
    const std::string& borrowed = connection.borrowed;
    const bool is_lent = std::any_of(offers.begin(), offers.end(), [&](const HeldLockOffer& offer) {
      return offer.owner_id == borrowed;
    });
    if (!borrowed.empty() && !is_lent) shutdown(connection.socket.get(), SHUT_WR);
  }
}

// While no descriptor is left, new connections wait in the backlog.  They must not wake us up.
void OuterRun::listen(bool on) {
  if (!on) listens_at_ = after(Clock::now(), kListensAgain);
  if (std::exchange(listening_, on) == on) return;
  epoll_event event{.events = on ? std::uint32_t{EPOLLIN} : 0, .data = {.fd = listener_.get()}};
  epoll_ctl(events_.get(), EPOLL_CTL_MOD, listener_.get(), &event);
}

void OuterRun::accept_some() {
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

// False: the peer has ended, or is not a dlock.
bool OuterRun::answer(Connection& connection, std::span<const HeldLockOffer> offers) const {
  const int socket = connection.socket.get();
  Question question;
  const ssize_t got = util::receive_datagram(socket, &question, sizeof(question));
  if (got < 0 && errno == EAGAIN) return true;
  if (got != static_cast<ssize_t>(sizeof(question))) return false;
  const HeldLockOffer* const offer = find_offer(offers, question);
  const Answer answer = make_answer(socket, question, offer);
  const bool yes = answer.left_ms > 0 || answer.left_ms == Answer::kForEver;
  const auto lock_fds =
      yes && connection.borrowed.empty() ? offer->lock_fds : std::span<const int>();
  // After a recall the answer cannot be sent, but the nested run counts until it has ended.
  const bool sent = util::send_datagram(socket, &answer, sizeof(answer), lock_fds);
  if (yes && sent) connection.borrowed = offer->owner_id;
  return sent || !connection.borrowed.empty();
}

bool OuterRun::serve(std::span<const HeldLockOffer> offers) {
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
      return connection.socket.get() == fd && !answer(connection, offers);
    });
    if (ended > 0) listen(true);
  }
  return count > 0;
}

}  // namespace dlock
