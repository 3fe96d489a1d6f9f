// Renewal.  One statement, which extends the row if it has not expired: a late one finds that it
//           has.
// Loss of the connection.  The row outlives it, and the lease goes on over another one; also if the
//           server has become read-only.
// Resumed.  The session of the process that acquired the lock has ended, and its marks with it.  A
//           resumed lease takes no marks: the row alone keeps others out, and several processes can
//           resume the same lease without ending the sessions of each other.  A renewal also writes
//           the new ttl into the record: on a cluster, waiters go by it (see Pulse).
// Done.     complete() is as release(), with a mark in the same transaction: see complete.cpp.
// News.     While nothing is asked the connection can only be closed: by somebody who breaks the
//           lock, or by a server that stops.
#include "backends/mysql/lease.hpp"

#include <sys/epoll.h>

#include <algorithm>

#include "backends/mysql/errors.hpp"
#include "backends/mysql/kill.hpp"
#include "backends/mysql/mysql_records.hpp"
#include "backends/mysql/pulse.hpp"
#include "backends/mysql/statements.hpp"
#include "core/lease_time.hpp"
#include "core/lock_record.hpp"
#include "core/marks.hpp"
#include "util/fd.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::mysql {
namespace {

constexpr Millis kReason{1'000};
constexpr unsigned kMostTriesOfALease = 10;

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
  Result<void> release(Deadline deadline, Cancel cancel) override {
    return leave(nullptr, deadline, cancel);
  }
  Result<void> complete(const Completion& completion, Deadline deadline, Cancel cancel) override {
    return leave(&completion, deadline, cancel);
  }
  Result<std::optional<Mark>> find_mark(Backend&, const MarkName& name, Deadline deadline) override;

 private:
  Result<void> connect(Deadline deadline, Cancel cancel);
  Error held_up(Error error) const;
  Result<void> prove(Deadline deadline, Cancel cancel);
  Result<void> leave(const Completion* completion, Deadline deadline, Cancel cancel);
  using Read = Written (*)(const std::vector<Answer>& answers);
  Reply ask(const std::string& text, Read read, Deadline deadline, Cancel cancel);
  Error lost(const Answer& found);
  bool may_repeat(const Reply& reply, unsigned tries, Deadline deadline,
                  const Cancel& cancel) const;
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
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<Connection> earlier_;  // given up, and open until it is known what held it up
  Deadline valid_until_;
  std::optional<Error> loss_;
  std::string held_up_by_;
  bool has_mark_ = true;
  bool earlier_has_ended_;  // the session of the connection before this one
  bool releasing_ = false;  // was asked for, and perhaps done
  Fd events_;               // epoll: the connection
  int listens_to_ = -1;
};

// Whatever the server refuses, it does not take the lock away by that.
Error not_told(Error error) {
  if (error.code != Errc::cancelled) error.code = Errc::unreachable;
  return error;
}

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
  // The server may not have noticed that the earlier session has ended: it would keep its mark.
  auto ended = end_session_of(*connection_, session_mark(request_.owner.id), deadline, cancel);
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
  if (row.at(0) == std::to_string(static_cast<int>(Kind::broken))) {
    if (!connection_->broken()) {
      (void)connection_->ask(statements_.forget(row_), soon(), Cancel());
    }
    return lose(taken_away(place_->shown, request_.key, row.at(1).value_or("")));
  }
  return lose({Errc::lost, here() + "the lease of " + key + " expired before it was renewed"});
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

// A server that does not take writes any more is as one that has gone: the connection ends, and the
// next one looks for the primary.
Reply MysqlLease::ask(const std::string& text, Read read, Deadline deadline, Cancel cancel) {
  Reply reply = connection_->ask(text, deadline, cancel);
  if (!reply.ok() || read(reply.answers).is_primary) return reply;
  reply.error = connection_->no_primary();
  connection_->close();
  return reply;
}

// A connection that the server has closed is made again at once: it may have been done to tell us
// something.
Result<void> MysqlLease::prove(Deadline deadline, Cancel cancel) {
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
    const Reply reply = ask(text, changed, deadline, cancel);
    if (!reply.ok()) {
      if (may_repeat(reply, tries, deadline, cancel)) continue;
      return held_up(not_told(*reply.error));
    }
    held_up_by_.clear();
    const auto& [is_primary, is_renewed, found] = changed(reply.answers);
    if (!is_renewed || found.rows.empty()) {
      Error error = lost(found);
      connection_->close();  // and its mark, which would keep others out
      return error;
    }
    if (method_ == Method::row && number(found.rows.front(), 2) == 0) {
      return Error{Errc::lost, connection_->server() + ": has no session that has the row of " +
                                   util::in_quotes(request_.key) + " locked"};
    }
    if (!is_resumed_ && !has_mark_) has_mark_ = number_in(reply.answers.back()) == 1;
    valid_until_ = trusted_until(asked, request_.ttl);
    return {};
  }
}

Result<void> MysqlLease::end_command(Deadline until, Deadline deadline, Cancel cancel) {
  if (loss_) return *loss_;
  request_.owner.ended = true;
  request_.owner.pid = 0;
  Request rest = request_;
  rest.ttl = std::max(remaining(until), Millis{1});
  const std::string text =
      statements_.end_command(row_, request_.owner.id, rest.ttl, format_lock_record(rest));
  Reply reply;
  for (unsigned tries = 1;; ++tries) {
    if (auto ok = connect(deadline, cancel); !ok) return ok;
    reply = ask(text, changed, deadline, cancel);
    if (reply.ok()) break;
    if (!may_repeat(reply, tries, deadline, cancel)) return not_told(*reply.error);
  }
  const Written result = changed(reply.answers);
  if (!result.is_done) return lost(result.found);
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

// `completion`: none for release(), of which what is gone may have been removed the first time.
Result<void> MysqlLease::leave(const Completion* completion, Deadline deadline, Cancel cancel) {
  if (loss_) return *loss_;
  for (unsigned tries = 1;; ++tries) {
    if (auto ok = connect(deadline, cancel); !ok) return ok;
    const bool again = std::exchange(releasing_, true);
    const Read read = completion != nullptr ? completed : changed;
    const Reply reply =
        ask(completion != nullptr ? statements_.complete(row_, request_.owner, fence_, *completion)
                                  : statements_.release(row_, request_.owner.id),
            read, deadline, cancel);
    if (reply.ok()) {
      const Written left = read(reply.answers);
      const bool is_gone = completion == nullptr && again && left.found.rows.empty();
      if (!left.is_done && !is_gone) return lost(left.found);
      connection_->close();
      return {};
    }
    // What a complete() that has failed has left; where that cannot be undone, the end of the
    // connection does it.
    if (completion != nullptr && !connection_->broken() &&
        !connection_->ask("ROLLBACK", soon(), Cancel()).ok()) {
      connection_->close();
    }
    if (may_repeat(reply, tries, deadline, cancel)) continue;
    return completion != nullptr ? held_up(explain(reply, *place_)) : not_told(*reply.error);
  }
}

Result<std::optional<Mark>> MysqlLease::find_mark(Backend&, const MarkName& name,
                                                  Deadline deadline) {
  const SayBy say = [&](const std::string& text, Deadline by) -> Result<Reply> {
    Reply reply = connection_->ask(text, by, Cancel());
    if (!reply.ok() && reply.code != kNoTable) return explain(reply, *place_);
    return reply;
  };
  const auto records = make_records(say, *place_, method_, [] { return false; });
  return dlock::find_mark(*records, name, deadline);
}

}  // namespace

std::unique_ptr<Lease> make_lease(std::shared_ptr<const Place> place, Method method,
                                  std::unique_ptr<Connection> connection, Grant grant) {
  return std::make_unique<MysqlLease>(std::move(place), method, std::move(connection),
                                      std::move(grant));
}

}  // namespace dlock::mysql
