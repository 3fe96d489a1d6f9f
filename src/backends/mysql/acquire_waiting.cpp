// Looks.    Of slots, any of several holders may make room, but a session cannot wait for one of
//           several marks.  A holder whose session has ended has no mark, and what another process
//           does to its lease wakes nobody.  In both cases the first waiter looks about each
//           second.
// Frozen.   The first waiter may be stopped while its session is intact.  Each waiter looks after
//           some time, the sooner the nearer it is.  If the lock stays free for a second, it
//           removes the first waiter from the queue, even if others stand between the two: several
//           may be stopped, as when a machine is suspended.  It also ends the session of that
//           waiter, so that those who wait for its mark look again at once.  A waiter that goes on
//           queues anew, as after any lost connection.  So a text that acquires the lock never
//           waits before it does: a grant of which the client never hears would last for a ttl.
//           The server may be stopped, too, or demoted while it goes on to answer: so nobody sleeps
//           there for longer than a minute.
//           On a cluster nothing wakes the first waiter when the lock is free, and to acquire it
//           takes a commit on all servers, so the others are more patient there.
// Crowds.   A waiter that finds the server nearly full waits without a connection, and tries again
//           every second or so.  The first waiter keeps its connection.
#include <algorithm>
#include <array>

#include "backends/mysql/acquisition.hpp"
#include "backends/mysql/errors.hpp"
#include "backends/mysql/kill.hpp"
#include "util/jitter.hpp"
#include "util/poll.hpp"

namespace dlock::mysql {
namespace {

// How often a waiter looks although nobody has called it.
constexpr Millis kFirstLook{5'000};  // times its place in the queue
constexpr Millis kLastLook{60'000};
constexpr Millis kRoomLook{500};  // on a cluster, times its place
constexpr Millis kPatienceWithFirst{1'000};
constexpr Millis kAfterDeadlock{100};
constexpr Millis kClusterPatienceWithFirst{10 * kRoomLook};

// Between two tries of a waiter for whom the server has no connection to spare.
constexpr Millis kOutside{2'000};

}  // namespace

// On the wire nothing happens, but a connection that is closed is noticed.
Result<void> Acquisition::rest(Millis time) {
  std::array<pollfd, 2> fds{{{wait_.cancel.fd(), POLLIN, 0}, {connection_->fd(), POLLIN, 0}}};
  util::poll(fds, std::min(after(Clock::now(), time), wait_.until));
  if (fds[0].revents != 0) return Error{Errc::cancelled, "stopped waiting"};
  return {};
}

// Waiters leave some of the server's connections to others: holders that must connect again, and
// operators.
Result<bool> Acquisition::has_room() {
  const auto reply = ask("SHOW GLOBAL STATUS LIKE 'Threads_connected'; SELECT @@max_connections");
  if (!reply) return reply.error();
  const auto& used = reply.value().answers.at(0).rows;
  const std::uint64_t most = number_in(reply.value().answers.at(1));
  const std::uint64_t left_alone = std::clamp<std::uint64_t>(most / 10, 2, 10);
  return used.empty() || number(used.front(), 1) + left_alone <= most;
}

// Without a connection, and so without a place in the queue.
Result<void> Acquisition::wait_outside(const State& state) {
  const auto idle = watch_first(state);
  if (!idle) return idle.error();
  patience_.recovered();
  Millis time = util::jitter(kOutside);
  if (idle.value()) time = std::min(time, *idle.value());
  // The session may outlive its connection for a moment.  Its marks must not.
  const std::string& owner = request_.owner.id;
  const Marks& marks = statements_.marks();
  const auto silent =
      ask("DO " + marks.release(session_mark(owner)) + ", " + marks.release(holder_mark(owner)) +
          ", " + marks.release(waiter_mark(owner)));
  if (!silent) return silent.error();
  own_ = 0;
  connection_.reset();
  if (util::wait_readable(wait_.cancel.fd(), std::min(after(Clock::now(), time), wait_.until))) {
    return Error{Errc::cancelled, "stopped waiting"};
  }
  if (time_is_up()) return busy();
  return connect();
}

// After a deadlock, the queue is looked at again: the wait for another mark may be possible.
Result<void> Acquisition::listen_for(const std::string& mark, Millis time) {
  if (on_cluster()) return rest(util::jitter(std::min(time, kWaiterBeat)));
  const Reply reply =
      connection_->ask(statements_.marks().wait_for(mark, time) + "DO 0",
                       std::min(wait_.until, after(patience(), time)), wait_.cancel);
  if (reply.ok()) return {};
  if (is_passing(reply.code)) return rest(util::jitter(kAfterDeadlock));
  if (time_is_up() && reply.error->code == Errc::unreachable) return busy();
  if (is_connected()) connection_->close();
  return *reply.error;
}

// If the lock is free, and it is the turn of the first waiter: when to look again whether that
// comes.  If it does not, it is passed over.
Result<std::optional<Millis>> Acquisition::watch_first(const State& state) {
  const Party& first = state.waiters().front();
  Request its = request_;
  its.mode = first.mode;
  its.slots = first.slots;
  if (state.decide(its, first.id).kind != Decision::Kind::take) {
    slow_first_ = 0;
    return std::optional<Millis>();
  }
  const Millis long_enough = on_cluster() ? kClusterPatienceWithFirst : kPatienceWithFirst;
  const Deadline now = Clock::now();
  if (slow_first_ != first.id) {
    slow_first_ = first.id;
    slow_since_ = now;
  } else if (now - slow_since_ >= long_enough) {
    const auto passed = ask(statements_.pass_over(first.id));
    if (!passed) return passed.error();
    // Others may be waiting for its mark.
    if (passed_over(passed.value().answers)) {
      (void)end_session_of(*connection_, session_mark(first.owner), patience(), wait_.cancel);
    }
    return std::optional(Millis{0});
  }
  return std::optional(kPatienceWithFirst);
}

// When the mark is free, that waiter has acquired the lock, or has gone.
Result<void> Acquisition::sleep_behind(const State& state, const Decision& decision) {
  const auto idle = watch_first(state);
  if (!idle) return idle.error();
  const auto place = static_cast<Millis::rep>(decision.ahead + 1);
  const Millis look = on_cluster() ? kRoomLook : kFirstLook;
  const Millis time = idle.value().value_or(std::min(look * place, kLastLook));
  if (time == Millis{0}) return {};
  return listen_for(waiter_mark(decision.party->owner), time);
}

Result<void> Acquisition::sleep(const State& state, const Decision& decision) {
  using Is = Decision::Kind;
  patience_.recovered();
  if (decision.kind != Is::take) vain_tries_ = 0;
  switch (decision.kind) {
    case Is::behind:
      return sleep_behind(state, decision);
    case Is::room: {
      const Party& holder = *decision.party;
      if (holder.present) return listen_for(holder_mark(holder.owner), kRoomLook);
      const bool expires = holder.left && *holder.left > Millis{0};
      const Millis time = util::jitter(kRoomLook);
      return rest(expires ? std::min(*holder.left + Millis{1}, time) : time);
    }
    case Is::held: {
      const Party& holder = *decision.party;
      // It may have expired, and its session not ended yet.
      const Millis left = std::clamp(holder.left.value_or(kLastLook), Millis{1'000}, kLastLook);
      return listen_for(holder_mark(holder.owner), on_cluster() ? std::min(left, kRoomLook) : left);
    }
    case Is::take:  // it was free when we looked, and not when we tried
      return rest(util::jitter(Millis{5} * (1U << std::min(vain_tries_++, 8U))));
    case Is::conflict:
      break;
  }
  return {};
}

}  // namespace dlock::mysql
