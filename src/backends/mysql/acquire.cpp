// Trying.   With mysql-table and mysql-version, one text either acquires the lock or changes
//           nothing, and returns the holders and waiters.  For mysql-row see acquire_row.cpp.
// Queueing. A waiter has a row in the queue, and its session has a mark (GET_LOCK).  A waiter waits
//           for the mark of one before it: see state.cpp.  The first waiter waits for the mark of
//           the holder.  If a row is there and its mark is free, the session of its owner has
//           ended: the row of a waiter is deleted, and the lease of a holder is waited for.
// Slots.    Any of several holders may make room, but a session cannot wait for one of several
//           marks.  So the first waiter has a second connection, the wakeup connection, which a
//           holder ends with KILL when it leaves.  KILL QUERY would be cheaper, but it is lost if
//           it arrives between two statements.
// Cluster.  On Galera a mark is known to one server only, and no server tells a client of what was
//           committed on another.  Nobody has a mark there, the leases of holders and waiters tell
//           who is there (see Pulse), and waiters look again and again.  No session can be found
//           and ended, so a text may be carried out late.  The acquire keeps its id there, and
//           removes what it finds of its own before each try.
// Frozen.   The first waiter may be stopped while its session is intact.  Each waiter looks after
//           some time, the sooner the nearer it is.  If the lock stays free for a second, it
//           removes the first waiter from the queue, even if others stand between the two: several
//           may be stopped, as when a machine is suspended.  It also ends the session of that
//           waiter, so that those who wait for its mark look again at once.  A waiter that goes on
//           queues anew, as after any lost connection.  So a text that acquires the lock never
//           waits before it does: a grant of which the client never hears would last for a ttl.
// Crowds.   A waiter that finds the server nearly full waits without a connection, and tries again
//           every second or so.
// Doubt.    When a connection is lost, its session ends, and its last text was carried out or not.
//           The acquire begins anew over the next connection, with another id.  First it ends the
//           earlier session and removes the rows of its id.
#include "backends/mysql/acquire.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "backends/mysql/acquisition.hpp"
#include "backends/mysql/errors.hpp"
#include "backends/mysql/kill.hpp"
#include "backends/mysql/lease.hpp"
#include "core/lock_record.hpp"
#include "util/jitter.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"
#include "util/random_id.hpp"

namespace dlock::mysql {
namespace {

constexpr unsigned kMostTries = 20;
constexpr unsigned kVainTries = 3;

// How often a waiter looks although nobody has called it.
constexpr Millis kFirstLook{5'000};  // times its place in the queue
constexpr Millis kLastLook{300'000};
constexpr Millis kEndedLook{10'000};
constexpr Millis kSlotsLook{5'000};
constexpr Millis kRowSlotsLook{1'000};  // a holder that died calls nobody
constexpr Millis kPatienceWithFirst{1'000};
constexpr Millis kAfterDeadlock{100};
constexpr Millis kClusterLook{500};  // times its place in the queue

// Between two tries of a waiter for whom the server has no connection to spare.
constexpr Millis kOutside{2'000};
constexpr Millis kLongest{86'400'000};

}  // namespace

// Says it again where that is all there is to do.  A connection that is broken afterwards was lost.
Result<Reply> Acquisition::ask(const std::string& text) {
  const Deadline deadline = patience();
  for (unsigned tries = 0;; ++tries) {
    Reply reply = connection_->ask(text, deadline, wait_.cancel);
    if (reply.ok()) return reply;
    if (connection_->broken()) return *reply.error;
    const Reply undone = connection_->ask("ROLLBACK", patience(), wait_.cancel);
    if (!undone.ok() && connection_->broken()) return *undone.error;
    if (reply.code == kNoTable && tries == 0) {
      auto made = create_tables(*connection_, *place_, patience(), wait_.cancel);
      if (!made) return made.error();
      continue;
    }
    if (!is_passing(reply.code) || tries >= kMostTries) {
      connection_->close();  // a part of the text may have been carried out: see leave()
      return explain(reply, *place_);
    }
    if (auto ok = rest(util::jitter(Millis{1 + 2 * tries})); !ok) return ok.error();
  }
}

// On the wire nothing happens, but a connection that is closed is noticed.
Result<void> Acquisition::rest(Millis time) {
  std::array<pollfd, 2> fds{{{wait_.cancel.fd(), POLLIN, 0}, {connection_->fd(), POLLIN, 0}}};
  util::poll(fds, std::min(after(Clock::now(), time), wait_.until));
  if (fds[0].revents != 0) return Error{Errc::cancelled, "stopped waiting"};
  return {};
}

std::unique_ptr<Lease> Acquisition::lease(const Outcome& out, Deadline asked,
                                          util::LifeToken life) {
  return make_lease(place_, method_, std::move(connection_),
                    {request_, out.won, out.fence, asked, std::move(life)});
}

// Once in each acquire().  Takes the mark of the session first: if the text takes too long, the
// next session finds and ends this one.
std::string Acquisition::forget_unused(const std::string& mark) {
  if (std::exchange(has_forgotten_unused_, true) || !connection_->skips_locked()) return {};
  return statements_.marks().take(mark) + statements_.forget_unused();
}

// What goes in front of each try on a cluster.
std::string Acquisition::beat() {
  if (!on_cluster()) return {};
  std::string late = statements_.forget_late(request_.owner.id, own_);
  const Deadline now = Clock::now();
  if (own_ == 0 || now - beat_ < kWaiterBeat) return late;
  beat_ = now;
  return late + statements_.beat(own_);
}

// For a key that is new, or after they were not as they must be: perhaps only because somebody was
// about to create them.
Result<void> Acquisition::look_at_tables() {
  const auto reply = ask(probe(Tables(place_->prefix)));
  if (!reply) return reply.error();
  if (number_in(reply.value().answers.back()) != 1) return unfit(*place_);
  return {};
}

Result<Acquisition::Tried> Acquisition::attempt() {
  for (bool created = false;;) {
    statements_.set_marks(marks_on(*connection_, pulse_, patience_.tries_once()));
    const Deadline asked = Clock::now();
    const auto reply = ask(forget_unused(session_mark(request_.owner.id)) + beat() +
                           statements_.attempt(request_, own_));
    if (!reply) return reply.error();
    const auto& [out, rows] = attempted(reply.value().answers);
    if (on_cluster()) pulse_.see(parties_of(rows), Clock::now());
    if (!out.fit) {
      if (auto ok = look_at_tables(); !ok) return ok.error();
      continue;
    }
    if (!out.has_row && !created) {
      if (auto ok = look_at_tables(); !ok) return ok.error();
      if (auto made = ask(statements_.create_rows({0})); !made) return made.error();
      created = true;
      continue;
    }
    Tried tried{nullptr, state_of(rows)};
    if (out.won != 0) tried.lease = lease(out, asked);
    return tried;
  }
}

Result<void> Acquisition::queue() {
  const auto joined = ask(statements_.join(request_));
  if (!joined) return joined.error();
  own_ = joined.value().answers.back().insert_id;
  beat_ = Clock::now();
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
  wakeup_connection_.reset();
  connection_.reset();
  if (util::wait_readable(wait_.cancel.fd(), std::min(after(Clock::now(), time), wait_.until))) {
    return Error{Errc::cancelled, "stopped waiting"};
  }
  if (time_is_up()) return busy();
  return connect();
}

Result<void> Acquisition::sweep(const State& state) {
  std::vector<std::uint64_t> ids;
  for (const Party& party : state.departed()) {
    if (party.id != own_) ids.push_back(party.id);
  }
  if (ids.empty()) return {};
  const auto swept = ask(statements_.sweep(ids));
  if (!swept) return swept.error();
  return {};
}

void Acquisition::tell(const State& state, const std::vector<Party>& holders) {
  if (!wait_.on_blocked || holders.empty()) return;
  std::string ids;
  for (const Party& holder : holders) ids += std::to_string(holder.id) + '/';
  if (ids == told_) return;
  told_ = ids;
  LockInfo info = state.info(request_.key, holders);
  std::erase_if(*info.waiters, [&](const LockInfo::Waiter& waiter) {
    return waiter.owner.id == request_.owner.id;
  });
  wait_.on_blocked(info);
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
  connection_->close();
  return *reply.error;
}

// If the lock is free, and it is the turn of the first waiter: when to look again whether that
// comes.  If it does not, it is passed over.
Result<std::optional<Millis>> Acquisition::watch_first(const State& state) {
  const Party& first = state.waiters().front();
  Request its = request_;
  its.mode = first.mode;
  its.slots = first.slots;
  if (state.decide(its, first.id).kind != Decision::Kind::take) return std::optional<Millis>();
  const Deadline now = Clock::now();
  if (slow_first_ != first.id) {
    slow_first_ = first.id;
    slow_since_ = now;
  } else if (now - slow_since_ >= kPatienceWithFirst) {
    const auto passed = ask(statements_.pass_over(first.id));
    if (!passed) return passed.error();
    // Others may be waiting for its mark.
    if (passed.value().answers.front().affected == 1) {
      (void)end_sessions_of(*connection_, first.owner, patience(), wait_.cancel);
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
  const Millis look = on_cluster() ? kClusterLook : kFirstLook;
  const Millis time = idle.value().value_or(std::min(look * place, kLastLook));
  if (time == Millis{0}) return {};
  return listen_for(waiter_mark(decision.party->owner), time);
}

// Waits until somebody ends the wakeup connection.  It is made before the last look at the holders:
// a holder that leaves between the look and the wait ends it.
Result<void> Acquisition::await_room(std::optional<Millis> soonest) {
  if (on_cluster()) {
    patience_.recovered();
    return rest(util::jitter(kClusterLook));
  }
  if (!wakeup_connection_) {
    auto wakeup = Connection::open(place_, patience(), wait_.cancel);
    // If the server is full, look now and then instead.
    if (!wakeup && wakeup.error().code == Errc::unreachable && !connection_->broken()) {
      patience_.recovered();
      return rest(kRowSlotsLook);
    }
    if (!wakeup) return wakeup.error();
    // The wakeup connection before this one may have the mark for another moment.
    const std::string mark = wakeup_mark(request_.owner.id);
    const Marks& marks = statements_.marks();
    const Reply marked = (*wakeup)->ask(
        marks.wait_for(mark, place_->connect_timeout) + marks.take(mark) + "DO 0",
        std::min(after(patience(), place_->connect_timeout), wait_.until), wait_.cancel);
    if (!marked.ok()) {
      // A holder may end it as soon as it has the mark, before the answer is received here.
      if (marked.error->code == Errc::unreachable) return rest(util::jitter(Millis{10}));
      return *marked.error;
    }
    if (number_in(marked.answers.at(1)) != 1) return {};
    wakeup_connection_ = std::move(*wakeup);
    return {};
  }
  patience_.recovered();
  const Millis look = method_ == Method::row ? kRowSlotsLook : kSlotsLook;
  const bool expires = soonest && *soonest > Millis{0};  // or it has, and its session not ended
  const Millis time = expires ? std::min(*soonest + Millis{1}, look) : look;
  const Deadline until = std::min(after(Clock::now(), time), wait_.until);
  std::array<pollfd, 3> fds{{{wait_.cancel.fd(), POLLIN, 0},
                             {connection_->fd(), POLLIN, 0},
                             {wakeup_connection_->fd(), POLLIN, 0}}};
  util::poll(fds, until);
  if (fds[0].revents != 0) return Error{Errc::cancelled, "stopped waiting"};
  if (fds[2].revents != 0) wakeup_connection_.reset();
  return {};
}

Result<void> Acquisition::sleep(const State& state, const Decision& decision) {
  using Is = Decision::Kind;
  if (decision.kind != Is::full) patience_.recovered();
  if (decision.kind != Is::take) vain_tries_ = 0;
  switch (decision.kind) {
    case Is::behind:
      return sleep_behind(state, decision);
    case Is::full:
      return await_room(decision.party->left);
    case Is::held: {
      const Party& holder = *decision.party;
      const auto record = parse_lock_record(holder.record);
      if (!holder.present && holder.left && record && record->owner.ended) {
        return rest(std::min(*holder.left + Millis{1}, kEndedLook));  // it does not come back
      }
      // It may have expired, and its session not ended yet.
      const Millis left = std::clamp(holder.left.value_or(kLongest), Millis{1'000}, kLongest);
      if (!holder.present) {  // it may be connecting again; later, only its lease tells
        const Millis back = Millis{100} * (1U << (3 * std::min(dead_holder_++, 2U)));
        return rest(std::min({left, back, kFirstLook}) + Millis{1});
      }
      dead_holder_ = 0;
      return listen_for(holder_mark(holder.owner),
                        on_cluster() ? std::min(left, kClusterLook) : left);
    }
    case Is::take:  // it was free when we looked, and not when we tried
      return rest(util::jitter(Millis{5} * (1U << std::min(vain_tries_++, 8U))));
    case Is::conflict:
      break;
  }
  return {};
}

Result<std::unique_ptr<Lease>> Acquisition::get() {
  for (;;) {
    auto tried = method_ == Method::row ? attempt_row() : attempt();
    if (!tried) return tried.error();
    patience_.answered();
    held_up_by_.clear();
    if (tried->lease) {
      patience_.recovered();
      return std::move(tried->lease);
    }
    const State& state = tried->state;
    const Decision decision = state.decide(request_, own_);
    if (decision.kind == Decision::Kind::conflict) {
      return mode_conflict(request_, decision.party->mode, decision.party->slots);
    }
    tell(state);
    // What looks free is somebody's for a moment only: who does not wait asks again.
    const bool once = patience_.tries_once();
    if (once && decision.kind == Decision::Kind::take && vain_tries_++ < kVainTries) continue;
    if (once || time_is_up()) return busy();
    if (auto ok = sweep(state); !ok) return ok.error();
    const auto& queue_now = state.waiters();
    if (own_ == 0 || std::none_of(queue_now.begin(), queue_now.end(),
                                  [&](const Party& party) { return party.id == own_; })) {
      // The first one may always wait here: somebody has to hear when the lock is free.
      const auto room = queue_now.empty() ? Result<bool>(true) : has_room();
      if (!room) return room.error();
      if (auto ok = room.value() ? queue() : wait_outside(state); !ok) return ok.error();
      continue;
    }
    if (auto ok = sleep(state, decision); !ok) return ok.error();
  }
}

// Says it again after a deadlock, as when many leave at once.
Reply Acquisition::insist(const std::string& text, Deadline deadline, Cancel cancel) {
  for (unsigned tries = 1;; ++tries) {
    Reply reply = connection_->ask(text, deadline, cancel);
    if (reply.ok() || !is_passing(reply.code) || tries >= kMostTries) return reply;
    util::wait_readable(cancel.fd(), after(Clock::now(), util::jitter(Millis{tries * 2})));
  }
}

// A session with a statement under way cannot be asked: another one ends it, waits until it has
// ended, and removes what it has written.
Result<void> Acquisition::remove_earlier(Deadline deadline, Cancel cancel) {
  if (earlier_id_.empty()) return {};
  auto ended = end_sessions_of(*connection_, earlier_id_, deadline, cancel);
  if (!ended) return ended.error();
  held_up_by_ = std::move(*ended);
  const Reply removed = insist(statements_.marks().take_over(earlier_id_, place_->connect_timeout) +
                                   "; " + statements_.leave(earlier_id_),
                               deadline, cancel);
  if (!removed.ok() && removed.code != kNoTable) return *removed.error;
  if (number_in(removed.answers.front()) != 1) {
    return Error{Errc::unreachable,
                 place_->shown + ": an earlier connection of this dlock has not ended yet"};
  }
  earlier_id_.clear();
  return {};
}

Result<void> Acquisition::use(Result<std::unique_ptr<Connection>> opened) {
  if (!opened) return opened.error();
  connection_ = std::move(*opened);
  statements_.set_marks(marks_on(*connection_, pulse_));
  return {};
}

// If there is no connection.  What was asked over the one that was lost is done or not, so all
// begins anew, with another id.
Result<void> Acquisition::connect() {
  if (!connection_ || connection_->broken()) {
    if (connection_ && earlier_id_.empty()) {
      earlier_id_ = request_.owner.id;
      if (!on_cluster()) request_.owner.id = util::random_id();
      own_ = 0;
      wakeup_connection_.reset();
    }
    if (auto ok = use(Connection::open(place_, patience(), wait_.cancel)); !ok) return ok;
  }
  return remove_earlier(patience(), wait_.cancel);
}

// Nothing of ours stays.
Result<void> Acquisition::leave() {
  if (!connection_) return {};
  if (own_ == 0 && earlier_id_.empty() && !connection_->broken()) return {};
  const Deadline deadline = after(Clock::now(), place_->connect_timeout);
  // The server may have closed it, and nobody has noticed yet.
  if (!connection_->broken()) (void)connection_->ask("ROLLBACK", deadline, Cancel());
  if (connection_->broken()) {
    if (earlier_id_.empty()) earlier_id_ = request_.owner.id;
    const auto open = [&](Deadline until) { return Connection::open(place_, until, Cancel()); };
    if (auto ok = use(try_in_farewell(open, deadline, Cancel())); !ok) return ok;
  }
  if (auto ok = remove_earlier(deadline, Cancel()); !ok) return ok;
  if (own_ != 0) {
    const Reply left = insist(statements_.leave(request_.owner.id), deadline, Cancel());
    if (!left.ok()) return *left.error;
  }
  connection_->close();
  return {};
}

Error Acquisition::held_up(Error error) const {
  if (error.code == Errc::unreachable && !held_up_by_.empty()) error.message += "; " + held_up_by_;
  return error;
}

Result<std::unique_ptr<Lease>> Acquisition::run() {
  for (;;) {
    const auto connected = connect();
    auto lease = connected ? get() : Result<std::unique_ptr<Lease>>(connected.error());
    if (lease) return lease;
    if (const auto again = patience_.pause(held_up(lease.error())); !again) {
      held_up_by_.clear();
      const auto left = leave();
      return again.error().code == Errc::busy && !left ? left.error() : held_up(again.error());
    }
    if (connection_) connection_->close();
  }
}

Result<std::unique_ptr<Lease>> acquire(const std::shared_ptr<const Place>& place, Method method,
                                       const Request& request, const Wait& wait) {
  return Acquisition(place, method, request, wait).run();
}

}  // namespace dlock::mysql
