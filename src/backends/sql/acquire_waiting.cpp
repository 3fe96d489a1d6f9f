// What a request does between two looks.
//
// Watch.   The owner of the gate waits for the name of one holder.  Of slots that is the oldest,
//          which is likely to end first, and it is waited for no longer than a second.  If the name
//          is free although the lease lives, the holder connects again, or its process has ended:
//          the owner of the gate looks each second.
// Gate.    The other waiters sleep in one statement, without end, so that the server keeps their
//          order.  The server can be stopped meanwhile, demoted or replaced, and the owner of the
//          gate can fail to take the lock.  So each of them looks over a second session now and
//          then: whether its own session is there, and whether the lock is free.  One that was free
//          at two looks with the same version is taken without the gate.  Two, because between a
//          release and the next grant each lock is free.
#include <algorithm>
#include <array>

#include "backends/sql/acquisition.hpp"
#include "util/jitter.hpp"
#include "util/poll.hpp"

namespace dlock::sql {
namespace {

constexpr Millis kLook{1'000};
constexpr Millis kLongestWatch{10'000};
constexpr Millis kLeastWatch{100};
constexpr Millis kAfterDeadlock{1'000};

constexpr Millis kFirstLookBeside{10'000};
constexpr Millis kLookBeside{30'000};  // and up to half more
constexpr Millis kIfFree{5'000};

}  // namespace

// A connection that is closed is noticed.
Result<void> Acquisition::rest(Millis time) {
  std::array<pollfd, 2> fds{{{wait_.cancel.fd(), POLLIN, 0}, {session_->fd(), POLLIN, 0}}};
  util::poll(fds, std::min(after(Clock::now(), time), wait_.until));
  if (fds[0].revents != 0) return Error{Errc::cancelled, "stopped waiting"};
  return {};
}

// The place in the queue is told without another look.
Result<void> Acquisition::join() {
  has_row_ = true;  // if the answer is lost, perhaps
  const auto joined = ask(statements_.join(request_));
  if (!joined) return joined.error();
  beat_at_ = after(Clock::now(), kWaiterBeat);
  last_.info.place = static_cast<unsigned>(number_in(last_answer(joined.value())));
  last_.seen += std::to_string(*last_.info.place);
  return {};
}

Result<bool> Acquisition::wait(Deadline until) {
  if (database_->is_without_session_locks()) return look_each_second(until);
  return has_gate_ ? watch(until) : wait_at_gate(until);
}

Result<bool> Acquisition::look_each_second(Deadline until) {
  if (Clock::now() >= beat_at_) {
    if (auto ok = join(); !ok) return ok.error();
  }
  if (auto ok = rest(std::min(util::jitter(kLook), remaining(until))); !ok) return ok.error();
  return Clock::now() < until;
}

// By the answer to a text that waits.
Result<bool> Acquisition::woken_by(const Reply& reply) {
  if (reply.ok()) {
    look_ = read(reply);
    return true;
  }
  if (session_->broken() || reply.trouble != Trouble::passing) return *reply.error;
  if (auto ok = rest(kAfterDeadlock); !ok) return ok.error();
  return true;
}

Result<bool> Acquisition::watch(Deadline until) {
  Millis time = std::min({remaining(until), last_.waits_for_any ? kLook : kLongestWatch,
                          std::max(last_.first_left, kLeastWatch)});
  if (last_.first == last_.nameless) {
    if (auto ok = rest(std::min(time, kLook)); !ok) return ok.error();
    time = Millis{0};
  }
  session_->send(statements_.watch(request_.owner.id, last_.first, time));
  // Some servers know whole seconds only.
  const Millis longest = std::chrono::ceil<std::chrono::seconds>(time);
  const Reply reply = session_->receive(after(patience_.call_until(), longest), wait_.cancel);
  if (session_->under_way()) session_->close(reply.error->message);
  if (reply.ok()) last_.nameless = gained(reply).has_name ? last_.first : "";
  return woken_by(reply);
}

Result<bool> Acquisition::wait_at_gate(Deadline until) {
  if (!session_->under_way()) {
    session_->send(statements_.wait_for_gate(request_.owner.id, remaining(until)));
    beside_.at = after(Clock::now(), kFirstLookBeside);
  }
  for (;;) {
    const Reply reply = session_->receive(std::min(until, beside_.at), wait_.cancel);
    if (!session_->under_way()) return woken_by(reply);
    if (reply.error->code == Errc::cancelled) return *reply.error;
    if (Clock::now() >= until) return false;
    if (Clock::now() < beside_.at) continue;
    auto is_told = look_beside();
    if (!is_told || *is_told) return is_told;
  }
}

// True: the caller is to know what was seen, or the lock may be taken.
Result<bool> Acquisition::look_beside() {
  beside_.at = after(Clock::now(), util::jitter(kLookBeside, kLookBeside * 3 / 2));
  auto beside = database_->open(patience_.call_until(), wait_.cancel);
  if (!beside && beside.error().is_full) return false;
  if (!beside) return beside.error();
  const Reply reply = (*beside)->ask(statements_.peek(), patience_.call_until(), wait_.cancel);
  if (!reply.ok()) return *reply.error;
  Look look = look_of(reply.answers);
  if (!look.is_writable) return no_primary((*beside)->server());
  const LockRow* const own = find_row(look.rows, request_.owner.id);
  if (own == nullptr || !own->has_session) {
    return Error{Errc::unreachable, (*beside)->server() + ": this is another server than before"};
  }
  const Look all = look;
  std::erase_if(look.rows, [](const LockRow& row) { return row.role != LockRow::Role::holder; });
  const Decision decision = decide(look, request_.claim(), request_.owner.id);
  const std::string before = last_.seen;
  remember(all, decision);
  // A reader that came in beside other readers would pass a writer that has the gate.
  const bool is_held = std::any_of(look.rows.begin(), look.rows.end(),
                                   [](const LockRow& row) { return row.is_alive(); });
  const bool is_free = decision.kind == Turn::Kind::granted && look.version &&
                       (request_.mode == Mode::slots || !is_held);
  if (is_free && beside_.free_version == *look.version) {
    session_ = std::move(*beside);
    named_.clear();
    begin_anew();
    beside_.may_pass_gate = true;
    return true;
  }
  beside_.free_version = is_free ? *look.version : "";
  if (is_free) beside_.at = after(Clock::now(), kIfFree);
  last_.is_news = last_.seen != before;
  return last_.is_news;
}

}  // namespace dlock::sql
