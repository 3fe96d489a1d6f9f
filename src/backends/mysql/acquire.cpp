// Trying.   One text either acquires the lock or changes nothing, and returns the holders and
//           waiters.
// Queueing. A waiter has a row in the queue, and its session has a mark (GET_LOCK).  A waiter waits
//           for the mark of one before it: see state.cpp.  The first waiter waits for the mark of
//           the holder.  If a row is there and its mark is free, the session of its owner has
//           ended: the row of a waiter is deleted.  A holder without a mark has died, or connects
//           again, or has let the lock go, to be released by another process: the waiter looks
//           now and then.  That, and how long a waiter trusts the others: see
//           acquire_waiting.cpp.
// Cluster.  Of servers that all take writes (mysql-version alone can do with them), each knows its
//           own marks only, and tells no client of what was committed on another.  Nobody has a
//           mark there, the leases of holders and waiters tell who is there (see Pulse), and
//           waiters look again and again.  No session can be found and ended, so a text may be
//           carried out late.  The acquire keeps its id there, and removes what it finds of its own
//           before each try.
// Doubt.    When a connection is lost, its session ends, and its last text was carried out or not.
//           The acquire begins anew over the next connection, with another id.  First it ends the
//           earlier session and removes the rows of its id.  One that gave no answer in time stays
//           open until then: the server can tell what its statement waits for, and would not any
//           more once it has noticed that the client has gone.
#include "backends/mysql/acquire.hpp"

#include <algorithm>
#include <utility>

#include "backends/mysql/acquisition.hpp"
#include "backends/mysql/errors.hpp"
#include "backends/mysql/kill.hpp"
#include "backends/mysql/lease.hpp"
#include "backends/mysql/row_lease.hpp"
#include "util/jitter.hpp"
#include "util/poll.hpp"
#include "util/random_id.hpp"

namespace dlock::mysql {
namespace {

constexpr unsigned kMostTries = 20;
constexpr unsigned kVainTries = 3;

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

std::unique_ptr<Lease> Acquisition::lease(const Outcome& out, Deadline asked) {
  return make_lease(place_, method_, std::move(connection_),
                    {request_, out.won, out.fence, out.slot, asked});
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
    const auto& [out, rows, is_primary] = attempted(reply.value().answers);
    if (!is_primary) {
      connection_->close();
      return connection_->no_primary();
    }
    if (on_cluster()) pulse_.see(parties_of(rows), Clock::now());
    if (!out.fit) {
      if (auto ok = look_at_tables(); !ok) return ok.error();
      continue;
    }
    if (!out.has_row && !created) {
      if (auto ok = look_at_tables(); !ok) return ok.error();
      if (auto made = ask(statements_.create_row()); !made) return made.error();
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

void Acquisition::tell(const State& state) {
  if (!wait_.on_blocked || state.holders().empty()) return;
  std::string ids;
  for (const Party& holder : state.holders()) ids += std::to_string(holder.id) + '/';
  const auto ours = std::find_if(state.waiters().begin(), state.waiters().end(),
                                 [&](const Party& waiter) { return waiter.id == own_; });
  const bool is_queued = ours != state.waiters().end();
  const auto place = static_cast<unsigned>(ours - state.waiters().begin()) + 1;
  if (is_queued) ids += std::to_string(place);
  if (ids == told_) return;
  told_ = ids;
  LockInfo info = state.info(request_.key);
  if (is_queued) info.place = place;
  wait_.on_blocked(info);
}

Result<std::unique_ptr<Lease>> Acquisition::get() {
  for (;;) {
    auto tried = attempt();
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
      return mode_conflict(request_.key, request_.claim(),
                           {decision.party->mode, decision.party->slots});
    }
    tell(state);
    // What looks free is somebody's for a moment only: who does not wait asks again.
    const bool once = patience_.tries_once();
    if (once && decision.kind == Decision::Kind::take && vain_tries_++ < kVainTries) continue;
    if (once || time_is_up()) return busy();
    if (auto ok = sweep(state); !ok) return ok.error();
    const auto& queue_now = state.waiters();
    if (std::none_of(queue_now.begin(), queue_now.end(),
                     [&](const Party& party) { return party.id == own_; })) {
      if (own_ != 0 && !on_cluster()) {  // who passed us over is about to end this session
        connection_->close();
        return Error{Errc::unreachable, place_->shown + ": the place in the queue was lost"};
      }
      // The first one may always wait here: somebody has to hear when the lock is free.
      const auto room = queue_now.empty() ? Result<bool>(true) : has_room();
      if (!room) return room.error();
      if (auto ok = room.value() ? queue() : wait_outside(state); !ok) return ok.error();
      continue;
    }
    if (auto ok = sleep(state, decision); !ok) return ok.error();
  }
}

// A session with a statement under way cannot be asked: another one ends it, waits until it has
// ended, and removes what it has written.
Result<void> Acquisition::remove_earlier(Deadline deadline, Cancel cancel) {
  if (earlier_id_.empty()) return {};
  auto ended = end_session_of(*connection_, session_mark(earlier_id_), deadline, cancel);
  earlier_.reset();
  if (!ended) return ended.error();
  held_up_by_ = std::move(*ended);
  if (method_ == Method::row) {
    const auto of_row = end_session_of(*connection_, row_mark(earlier_id_), deadline, cancel);
    if (!of_row) return of_row.error();
  }
  const Reply removed =
      connection_->insist(statements_.marks().take_over(earlier_id_, place_->connect_timeout) +
                              "; " + statements_.leave(earlier_id_),
                          deadline, cancel);
  if (!removed.ok() && removed.code != kNoTable) return *removed.error;
  if (number_in(removed.answers.at(0)) != 1) {
    return Error{Errc::unreachable,
                 place_->shown + ": an earlier connection of this dlock has not ended yet"};
  }
  earlier_id_.clear();
  return {};
}

// In place of the connection that there was, if any.  What was asked over that one is done or not,
// so all begins anew, with another id.
Result<void> Acquisition::open(Deadline deadline, Cancel cancel) {
  if (connection_ && earlier_id_.empty()) {
    earlier_id_ = request_.owner.id;
    if (!on_cluster()) request_.owner.id = util::random_id();
    own_ = 0;
  }
  if (connection_ && !earlier_) earlier_ = std::move(connection_);
  connection_.reset();
  auto opened = Connection::open(place_, deadline, cancel, earlier_.get());
  if (!opened) return opened.error();
  connection_ = std::move(*opened);
  if (on_cluster() && method_ != Method::version) {
    return Error{
        Errc::unsupported,
        connection_->server() +
            ": is one of several servers that take writes (Galera, or a replication group "
            "with several primaries), where a lock of this backend is known to one of them "
            "only; use mysql-version"};
  }
  statements_.set_marks(marks_on(*connection_, pulse_));
  return {};
}

Result<void> Acquisition::connect() {
  if (!is_connected()) {
    if (auto ok = open(patience(), wait_.cancel); !ok) return ok;
  }
  return remove_earlier(patience(), wait_.cancel);
}

// Nothing of ours stays.
Result<void> Acquisition::leave() {
  if (earlier_id_.empty() && (!connection_ || (is_connected() && own_ == 0))) return {};
  const Deadline deadline = after(Clock::now(), place_->connect_timeout);
  // The server may have closed it, and nobody has noticed yet.
  if (is_connected()) (void)connection_->ask("ROLLBACK", deadline, Cancel());
  if (!is_connected()) {
    const auto again = [&](Deadline until) { return open(until, Cancel()); };
    if (auto ok = try_in_farewell(again, deadline, Cancel()); !ok) return ok;
  }
  if (auto ok = remove_earlier(deadline, Cancel()); !ok) return ok;
  if (own_ != 0) {
    const Reply left =
        connection_->insist(statements_.leave(request_.owner.id), deadline, Cancel());
    if (!left.ok()) return *left.error;
  }
  connection_->close();
  return {};
}

Error Acquisition::held_up(Error error) const {
  if (error.code == Errc::unreachable && !held_up_by_.empty()) error.message += "; " + held_up_by_;
  return error;
}

// A lease without its row is as one whose grant was not heard.
Result<std::unique_ptr<Lease>> Acquisition::take() {
  auto lease = get();
  if (!lease) return lease;
  if (method_ != Method::row) return lease;
  auto locked = lock_row(place_, std::move(*lease), request_, wait_, patience_);
  if (locked) return locked;
  earlier_id_ = std::exchange(request_.owner.id, util::random_id());
  own_ = 0;
  return locked;
}

Result<std::unique_ptr<Lease>> Acquisition::run() {
  for (;;) {
    const auto connected = connect();
    auto lease = connected ? take() : Result<std::unique_ptr<Lease>>(connected.error());
    if (lease) return lease;
    if (const auto again = patience_.pause(held_up(lease.error())); !again) {
      held_up_by_.clear();
      if (again.error().code != Errc::unreachable) {  // nobody will be told what held it up
        if (connection_ && !is_connected()) connection_->close();
        if (earlier_) earlier_->close();
      }
      const auto left = leave();
      return again.error().code == Errc::busy && !left ? left.error() : held_up(again.error());
    }
    if (is_connected()) connection_->close();
  }
}

Result<std::unique_ptr<Lease>> acquire(const std::shared_ptr<const Place>& place, Method method,
                                       const Request& request, const Wait& wait) {
  return Acquisition(place, method, request, wait).run();
}

}  // namespace dlock::mysql
