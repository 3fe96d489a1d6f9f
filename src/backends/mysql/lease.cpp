// Renewal.  One statement, which extends the row if it has not expired: a late one finds that it
//           has.  mysql-row has nothing to extend: that the connection answers is the proof, and
//           the server starts to count its silence (wait_timeout = ttl) anew with each statement.
// Loss of the connection.  The row outlives it, and the lease goes on over another one.  With
//           mysql-row the lock has ended with it, and the row keeps the next holder waiting until
//           release() removes it, when the command has ended.
// Resumed.  The session of the process that acquired the lock has ended, and its marks with it.  A
//           resumed lease takes no marks: the row alone keeps others out, and several processes can
//           resume the same lease without ending the sessions of each other.  A renewal also writes
//           the new ttl into the record: on a cluster, waiters go by it (see Pulse).
// Waiters.  Where the holder has no mark, the first waiter sleeps on its wakeup connection.  So
//           each change that can let it in earlier ends that connection.
// Done.     complete() is as release(), with a mark in the same transaction: see once.cpp.
// News.     While nothing is asked the connection can only be closed: by somebody who breaks the
//           lock, or by a server that stops.
#include "backends/mysql/lease.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>

#include "backends/mysql/errors.hpp"
#include "backends/mysql/kill.hpp"
#include "backends/mysql/pulse.hpp"
#include "backends/mysql/statements.hpp"
#include "core/lease_time.hpp"
#include "core/lock_record.hpp"
#include "util/fd.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::mysql {
namespace {

constexpr Millis kReason{1'000};
constexpr unsigned kMostTriesOfALease = 10;

// Of a row that confirm() gave.
bool is_kind(const Row& row, Kind kind) {
  return row.size() == 3 && row[0] == std::to_string(static_cast<int>(kind));
}

class MysqlLease final : public Lease {
 public:
  MysqlLease(std::shared_ptr<const Place> place, Method method,
             std::unique_ptr<Connection> connection, Grant grant)
      : place_(std::move(place)),
        method_(method),
        statements_(method, place_->prefix, grant.request.key, marks_on(*connection)),
        request_(std::move(grant.request)),
        row_(grant.row),
        fence_(grant.fence),
        slot_(grant.slot),
        is_resumed_(grant.resumed),
        life_(std::move(grant.life)),
        connection_(std::move(connection)),
        valid_until_(trusted_until(grant.asked, request_.ttl)),
        earlier_has_ended_(!is_resumed_) {}

  const std::string& owner_id() const override { return request_.owner.id; }
  std::optional<std::uint64_t> fence() const override { return fence_; }
  std::optional<unsigned> slot() const override {
    return slots() && slot_ > 0 ? std::optional(slot_) : std::nullopt;
  }
  Deadline valid_until() const override { return valid_until_; }
  Result<void> renew(Deadline deadline, Cancel cancel) override;
  Result<void> end_command(Deadline until, Deadline deadline, Cancel cancel) override;
  int event_fd() override;
  std::vector<int> witness_fds() const override {
    return life_.fd ? std::vector{life_.fd.get()} : std::vector<int>();
  }
  Result<void> release(Deadline deadline, Cancel cancel) override {
    return leave(nullptr, deadline, cancel);
  }
  Result<void> complete(const Completion& completion, Deadline deadline, Cancel cancel) override {
    return leave(&completion, deadline, cancel);
  }

 private:
  // What another connection sees.
  struct Found {
    Answer row;            // as confirm() gives it
    bool is_done = false;  // our mark is there
  };

  Result<void> connect(Deadline deadline, Cancel cancel);
  Error held_up(Error error) const;
  Result<void> prove(Deadline deadline, Cancel cancel);
  Result<void> prove_row(Deadline deadline, Cancel cancel);
  Result<void> leave(const Completion* completion, Deadline deadline, Cancel cancel);
  std::string text_to_leave(const Completion* completion) const;
  Result<void> give_up(const Completion* completion, Deadline deadline, Cancel cancel);
  Result<void> give_up_row(const Completion* completion, Deadline deadline, Cancel cancel);
  void undo();
  Result<void> done(const Reply& reply);
  Result<void> remove_record(Deadline deadline, Cancel cancel);
  Result<void> released(const Reply& reply, bool again);
  void wake_first(const Reply& reply);
  Error lost(const Answer& found);
  bool may_repeat(const Reply& reply, unsigned tries, Deadline deadline,
                  const Cancel& cancel) const;
  std::optional<Found> find_out(Deadline deadline, Cancel cancel);
  Error lost_with_connection(const Answer& found, const Error& why);
  static Deadline soon() { return after(Clock::now(), kReason); }
  void listen();
  bool slots() const { return request_.mode == Mode::slots; }
  std::string here() const { return place_->shown + ": "; }
  Error lose(Error error) {
    loss_ = error;
    return error;
  }

  const std::shared_ptr<const Place> place_;
  const Method method_;
  const Statements statements_;
  Request request_;
  const std::uint64_t row_;
  const std::uint64_t fence_;
  const unsigned slot_;
  const bool is_resumed_;
  const util::LifeToken life_;
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<Connection> earlier_;  // given up, and open until it is known what held it up
  Deadline valid_until_;
  std::optional<Error> loss_;
  Deadline asked_{};  // when the proof that is under way was asked for
  std::string held_up_by_;
  bool has_mark_ = true;
  bool earlier_has_ended_;                 // the session of the connection before this one
  bool releasing_ = false;                 // was asked for, and perhaps done
  std::optional<std::string> completing_;  // the period, if that was by complete(), the last time
  Fd events_;                              // epoll: the connection
  int listens_to_ = -1;
};

// Whatever the server refuses, it does not take the lock away by that.
Error not_told(Error error) {
  if (error.code != Errc::cancelled) error.code = Errc::unreachable;
  return error;
}

// With mysql-row, no second connection has the lock.
Result<void> MysqlLease::connect(Deadline deadline, Cancel cancel) {
  if (connection_->broken()) {
    auto again = Connection::open(place_, deadline, cancel, connection_.get());
    if (!again) return held_up(not_told(again.error()));
    earlier_ = std::exchange(connection_, std::move(*again));
    has_mark_ = false;
    listens_to_ = -1;
    earlier_has_ended_ = false;
  }
  if (earlier_has_ended_) return {};
  // The server may not have noticed that the earlier session has ended: it would keep its mark, and
  // its row lock.
  auto ended = end_sessions_of(*connection_, request_.owner.id, deadline, cancel);
  earlier_.reset();
  if (!ended) return held_up(not_told(ended.error()));
  if (!ended->empty()) held_up_by_ = std::move(*ended);
  earlier_has_ended_ = true;
  return {};
}

// What has held up a renewal holds up the next one, too, until one is answered.
Error MysqlLease::held_up(Error error) const {
  if (error.code == Errc::unreachable && !held_up_by_.empty()) {
    error.message +=
        "; " + held_up_by_ + " (the next time, use a --ttl that is longer than this lasts)";
  }
  return error;
}

Error MysqlLease::lost(const Answer& found) {
  const std::string key = util::in_quotes(request_.key);
  if (found.rows.empty()) {
    return lose({Errc::lost, here() + "the row of " + key +
                                 " is not there any more: it expired, or somebody deleted it"});
  }
  const Row& row = found.rows.front();
  if (is_kind(row, Kind::broken)) {
    if (!connection_->broken()) {
      (void)connection_->ask(statements_.forget(row_), soon(), Cancel());
    }
    return lose(taken_away(place_->shown, request_.key, row.at(1).value_or("")));
  }
  // A proxy, or a library, that connected again in silence.
  if (method_ == Method::row) {
    return lose({Errc::lost, here() + "the session that had the row lock of " + key +
                                 " has been replaced by another; is there a proxy in between?"});
  }
  return lose({Errc::lost, here() + "the lease of " + key + " expired before it was renewed"});
}

// What there is of the row, seen over another connection; none if nobody can tell.
std::optional<MysqlLease::Found> MysqlLease::find_out(Deadline deadline, Cancel cancel) {
  const Deadline until = std::min(deadline, soon());
  auto other = Connection::open(place_, until, cancel);
  if (!other) return std::nullopt;
  // What the session had under way is done, or never will be, once it has ended.  Until then it may
  // have the row lock, and the new connection must not pass for ours.
  if (!end_sessions_of(**other, request_.owner.id, until, cancel)) return std::nullopt;
  const std::string ended =
      statements_.marks().wait_for(session_mark(request_.owner.id), remaining(until));
  const std::string mark =
      completing_ ? statements_.is_done_by(*completing_, request_.owner.id) : "SELECT 0";
  Reply reply = (*other)->ask(ended + mark + "; " + statements_.confirm(row_, request_.owner.id),
                              until, cancel);
  if (!reply.ok() || number_in(reply.answers.at(0)) != 1) return std::nullopt;
  connection_ = std::move(*other);
  listens_to_ = -1;
  return Found{std::move(reply.answers.at(2)), number_in(reply.answers.at(1)) == 1};
}

// The connection of mysql-row is gone, and the lock with it: perhaps there is a note why.
Error MysqlLease::lost_with_connection(const Answer& found, const Error& why) {
  if (!found.rows.empty() && is_kind(found.rows.front(), Kind::broken)) return lost(found);
  return lose({Errc::lost, why.message + "; the row lock ended with the connection"});
}

Result<void> MysqlLease::renew(Deadline deadline, Cancel cancel) {
  if (loss_) return *loss_;
  auto proof = prove(deadline, cancel);
  listen();
  return proof;
}

// The first time it was cut, or as long as it is only the moment that is bad.
bool MysqlLease::may_repeat(const Reply& reply, unsigned tries, Deadline deadline,
                            const Cancel& cancel) const {
  if (Clock::now() >= deadline || cancel.requested()) return false;
  return connection_->broken() ? tries == 1 : is_passing(reply.code) && tries < kMostTriesOfALease;
}

// A connection that the server has closed is made again at once: it may have been done to tell us
// something.
Result<void> MysqlLease::prove(Deadline deadline, Cancel cancel) {
  if (method_ == Method::row) return prove_row(deadline, cancel);
  for (unsigned tries = 1;; ++tries) {
    if (auto ok = connect(deadline, cancel); !ok) return ok;
    // In this order: an old lease that has expired is not to become ours again by a new mark.
    std::string text = is_resumed_ ? statements_.change(row_, request_.owner.id, request_.ttl,
                                                        format_lock_record(request_))
                                   : statements_.renew(row_, request_.owner.id, request_.ttl);
    if (!has_mark_ && !is_resumed_) {
      // The session that was ended may have the two marks for a moment more.  The answer must be in
      // time even if each is waited for in vain, and MySQL makes a second of half a second.
      const Millis wait = std::min(kReason, remaining(deadline) / 8);
      text += "; " + statements_.resume(row_, request_.owner.id, request_.ttl, wait);
    }
    const Deadline asked = Clock::now();
    const Reply reply = connection_->ask(text, deadline, cancel);
    if (!reply.ok()) {
      if (may_repeat(reply, tries, deadline, cancel)) continue;
      return held_up(not_told(*reply.error));
    }
    held_up_by_.clear();
    if (reply.answers.at(0).affected != 1) {
      Error error = lost(reply.answers.at(1));
      connection_->close();  // and its mark, which would keep others out
      return error;
    }
    if (is_resumed_) {
      wake_first(reply);
    } else if (!has_mark_) {
      has_mark_ = number_in(reply.answers.back()) == 1;
    }
    valid_until_ = trusted_until(asked, request_.ttl);
    return {};
  }
}

// To hang up would be to give the lock up, in the middle of the job: an answer that does not come
// is waited for again the next time.
Result<void> MysqlLease::prove_row(Deadline deadline, Cancel cancel) {
  if (!connection_->under_way()) {
    asked_ = Clock::now();
    connection_->send(statements_.confirm(row_, request_.owner.id));
  }
  const Reply reply = connection_->receive(deadline, cancel);
  if (is_passing(reply.code)) return prove_row(deadline, cancel);
  if (!reply.ok()) {
    if (connection_->broken()) {
      const auto found = find_out(deadline, cancel);
      return lost_with_connection(found.value_or(Found{}).row, *reply.error);
    }
    return not_told(*reply.error);
  }
  const Answer& found = reply.answers.back();
  if (found.rows.empty() || !is_kind(found.rows.front(), Kind::holder) ||
      found.rows.front()[2] != "1") {
    return lost(found);
  }
  valid_until_ = trusted_until(asked_, request_.ttl);
  return {};
}

// That of mysql-row is told over another connection: what the one with the row lock writes, nobody
// sees before its end.
Result<void> MysqlLease::end_command(Deadline until, Deadline deadline, Cancel cancel) {
  if (loss_) return *loss_;
  const bool expires = method_ != Method::row;
  request_.owner.ended = true;
  request_.owner.pid = expires ? 0 : getpid();
  const Millis left = std::max(remaining(until), Millis{1});
  Request rest = request_;
  if (expires) rest.ttl = left;
  const std::string text =
      statements_.end_command(row_, request_.owner.id, left, format_lock_record(rest, life_.mark));
  std::unique_ptr<Connection> other;
  if (!expires) {
    auto opened = Connection::open(place_, deadline, cancel);
    if (!opened) return not_told(opened.error());
    other = std::move(*opened);
  }
  Reply reply;
  for (unsigned tries = 1;; ++tries) {
    if (expires) {
      if (auto ok = connect(deadline, cancel); !ok) return ok;
    }
    reply = (expires ? connection_ : other)->ask(text, deadline, cancel);
    if (reply.ok()) break;
    if (!may_repeat(reply, tries, deadline, cancel)) return not_told(*reply.error);
  }
  if (reply.answers.at(0).affected != 1) return lost(reply.answers.at(1));
  if (!expires) return {};
  wake_first(reply);
  connection_->close();
  return {};
}

// On a cluster a force-release ends no session: only a renewal tells.
int MysqlLease::event_fd() {
  if (statements_.marks().on_cluster()) return -1;
  if (!events_) {
    events_.reset(epoll_create1(EPOLL_CLOEXEC));
    listen();
  }
  return events_.get();
}

// A descriptor that is closed leaves the set by itself.  That of a connection that was given up may
// be closed by the client library at any time, so it is not taken out: if its server ends it, the
// next renewal comes sooner, and closes it.
void MysqlLease::listen() {
  if (!events_ || loss_ || connection_->broken() || listens_to_ == connection_->fd()) return;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  if (epoll_ctl(events_.get(), EPOLL_CTL_ADD, connection_->fd(), &event) == 0) {
    listens_to_ = connection_->fd();
  }
}

// `completion`: none for release().
Result<void> MysqlLease::leave(const Completion* completion, Deadline deadline, Cancel cancel) {
  if (loss_ && method_ != Method::row) return *loss_;
  auto left = method_ == Method::row ? give_up_row(completion, deadline, cancel)
                                     : give_up(completion, deadline, cancel);
  if (left) connection_->close();
  return left;
}

std::string MysqlLease::text_to_leave(const Completion* completion) const {
  return completion != nullptr ? statements_.complete(row_, request_.owner, fence_, *completion)
                               : statements_.release(row_, request_.owner.id);
}

Result<void> MysqlLease::give_up(const Completion* completion, Deadline deadline, Cancel cancel) {
  for (unsigned tries = 1;; ++tries) {
    if (auto ok = connect(deadline, cancel); !ok) return ok;
    const bool again = std::exchange(releasing_, true);
    const Reply reply = connection_->ask(text_to_leave(completion), deadline, cancel);
    if (reply.ok()) return completion != nullptr ? done(reply) : released(reply, again);
    if (completion != nullptr) undo();
    if (may_repeat(reply, tries, deadline, cancel)) continue;
    return completion != nullptr ? held_up(explain(reply, *place_)) : not_told(*reply.error);
  }
}

// The transaction ends with its connection, whether or not it was heard what became of the release:
// if the row is gone, it was carried out.  A complete() that nobody waits for any more may be under
// way when release() is asked for.
Result<void> MysqlLease::give_up_row(const Completion* completion, Deadline deadline,
                                     Cancel cancel) {
  if (loss_) return remove_record(deadline, cancel);
  if (connection_->under_way() && !releasing_) {  // a proof that nobody waits for any more
    const Reply proof = connection_->receive(deadline, cancel);
    if (!proof.ok() && !connection_->broken()) return not_told(*proof.error);
  }
  const bool again = std::exchange(releasing_, true);
  if (!connection_->under_way()) {
    completing_ = completion != nullptr ? std::optional(completion->period) : std::nullopt;
    connection_->send(text_to_leave(completion));
  }
  const Reply reply = connection_->receive(deadline, cancel);
  if (reply.ok()) {
    auto left = completing_ ? done(reply) : released(reply, again);
    return left ? left : remove_record(deadline, cancel);
  }
  if (connection_->under_way()) return not_told(*reply.error);
  if (completing_) {
    undo();
    releasing_ = false;
  }
  if (!connection_->broken()) {
    const bool was_other = completing_.has_value() != (completion != nullptr);
    if (was_other || is_passing(reply.code)) return give_up_row(completion, deadline, cancel);
    return completing_ ? explain(reply, *place_) : not_told(*reply.error);
  }
  const auto found = find_out(deadline, cancel);
  if (!found) return not_told(*reply.error);
  if (found->is_done || (!completing_ && found->row.rows.empty())) return {};
  (void)lost_with_connection(found->row, *reply.error);
  return remove_record(deadline, cancel);
}

// What a complete() that has failed has left, so that the lock can be given up after all.  Where
// that fails, it is left to the server, which undoes it when the connection ends.
void MysqlLease::undo() {
  if (connection_->broken()) return;
  if (!connection_->ask(statements_.undo_complete(), soon(), Cancel()).ok()) connection_->close();
}

// On a connection without the transaction: what that removes, the next holder does not see.
Result<void> MysqlLease::remove_record(Deadline deadline, Cancel cancel) {
  connection_->close();
  if (auto ok = connect(deadline, cancel); !ok) return ok;
  const Reply reply = connection_->ask(statements_.leave(request_.owner.id), deadline, cancel);
  if (!reply.ok()) return not_told(*reply.error);
  return *loss_;
}

// `again`: what is gone may have been removed the first time.
Result<void> MysqlLease::released(const Reply& reply, bool again) {
  const Answer& found = reply.answers.at(1);
  if (reply.answers.at(0).affected != 1 && !(again && found.rows.empty())) return lost(found);
  wake_first(reply);
  return {};
}

Result<void> MysqlLease::done(const Reply& reply) {
  const auto& [is_done, found] = completed(reply.answers);
  if (!is_done) return lost(found);
  wake_first(reply);
  return {};
}

void MysqlLease::wake_first(const Reply& reply) {
  (void)end_session(*connection_, number_in(reply.answers.back()), soon());
}

}  // namespace

std::unique_ptr<Lease> make_lease(std::shared_ptr<const Place> place, Method method,
                                  std::unique_ptr<Connection> connection, Grant grant) {
  return std::make_unique<MysqlLease>(std::move(place), method, std::move(connection),
                                      std::move(grant));
}

}  // namespace dlock::mysql
