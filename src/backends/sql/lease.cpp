// Renewal.     One statement extends the row if the lease is not over; one that is late finds that
//              it is.  It commits a write on the server that is trusted, so a server that was
//              demoted, or is cut off from its standby, does not renew.
// Connection.  The row outlives the session, and the lease goes on over another one.  The renewal
//              comes before the own name is taken again: a lease that is over does not become the
//              holder's again by that.
// Resumed.     The session of the process that acquired the lock has ended.  A resumed lease takes
//              no name, so that several processes can resume it.
// News.        While nothing is asked, the connection can only be closed: by force_release(), or
//              by a server that stops.
#include "backends/sql/lease.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "backends/sql/conversation.hpp"
#include "backends/sql/heartbeats.hpp"
#include "backends/sql/sql_records.hpp"
#include "backends/sql/statements.hpp"
#include "core/lease_time.hpp"
#include "core/lock_record.hpp"
#include "core/marks.hpp"
#include "util/fd.hpp"
#include "util/text.hpp"

namespace dlock::sql {
namespace {

constexpr Millis kForgetting{1'000};
constexpr unsigned kMostRenewals = 10;

class SqlLease final : public Lease {
 public:
  SqlLease(std::shared_ptr<const Database> database, std::unique_ptr<Session> session, Grant grant)
      : database_(std::move(database)),
        statements_(*database_, grant.request.key),
        known_record_(format_lock_record(grant.request)),
        request_(std::move(grant.request)),
        fence_(grant.fence),
        slot_(grant.slot),
        is_resumed_(grant.resumed_for),
        session_(std::move(session)),
        has_name_(grant.has_name) {
    request_.ttl = grant.resumed_for.value_or(request_.ttl);
    valid_until_ = trusted_until(grant.asked, request_.ttl);
  }

  const std::string& owner_id() const override { return request_.owner.id; }
  std::optional<std::uint64_t> fence() const override { return fence_; }
  std::optional<unsigned> slot() const override {
    return request_.mode == Mode::slots && slot_ > 0 ? std::optional(slot_) : std::nullopt;
  }
  Deadline valid_until() const override { return valid_until_; }
  Result<void> renew(Deadline deadline, Cancel cancel) override;
  Result<void> end_command(Deadline until, Deadline deadline, Cancel cancel) override;
  int event_fd() override;
  Result<void> release(Deadline deadline, Cancel cancel) override {
    return leave([&] { return statements_.release(request_.owner.id, has_name_); }, false, deadline,
                 cancel);
  }
  Result<void> complete(const Completion& completion, Deadline deadline, Cancel cancel) override {
    return leave(
        [&] { return statements_.complete(request_.owner, fence_, completion, has_name_); }, true,
        deadline, cancel);
  }
  Result<std::optional<Mark>> find_mark(Backend&, const MarkName& name, Deadline deadline) override;

 private:
  // A text depends on what the session has.
  using MakeText = std::function<std::string()>;
  Result<Changed> change(const MakeText& text, Deadline deadline, Cancel cancel);
  Result<Changed> set_end(const Request& told, Millis in, Deadline deadline, Cancel cancel);
  Result<void> connect(Deadline deadline, Cancel cancel);
  Result<void> leave(const MakeText& text, bool writes_mark, Deadline deadline, Cancel cancel);
  Error lost(const Changed& found);
  void listen();

  const std::shared_ptr<const Database> database_;
  const Statements statements_;
  const std::string known_record_;
  Request request_;
  const std::uint64_t fence_;
  const unsigned slot_;
  const bool is_resumed_;
  std::unique_ptr<Session> session_;
  bool has_name_;
  Deadline valid_until_{};
  std::optional<Error> loss_;
  bool was_released_ = false;  // perhaps
  Fd events_;                  // epoll: the session
  int listens_to_ = -1;
};

// Whatever the server refuses, it does not take the lock away by that.
Error not_told(Error error) {
  if (error.code != Errc::cancelled) error.code = Errc::unreachable;
  return error;
}

Result<void> SqlLease::connect(Deadline deadline, Cancel cancel) {
  if (session_ && !session_->broken()) return {};
  auto again = database_->open(deadline, cancel);
  if (!again) return not_told(again.error());
  session_ = std::move(*again);
  has_name_ = false;
  listens_to_ = -1;
  return {};
}

// A server that does not take writes any more is like one that has gone: the next connection looks
// for the primary.  A connection that was closed is made again at once: it may have been closed to
// tell something.
Result<Changed> SqlLease::change(const MakeText& text, Deadline deadline, Cancel cancel) {
  for (unsigned tries = 1;; ++tries) {
    if (auto ok = connect(deadline, cancel); !ok) return ok.error();
    const Reply reply = session_->ask(text(), deadline, cancel);
    if (reply.ok()) {
      Changed out = changed(reply);
      out.is_repeated = tries > 1;
      if (out.is_primary) return out;
      session_->close();
      return no_primary(session_->server());
    }
    const bool may_repeat = session_->broken()
                                ? tries == 1
                                : reply.trouble == Trouble::passing && tries < kMostRenewals;
    if (!may_repeat || Clock::now() >= deadline || cancel.requested()) return *reply.error;
  }
}

// From now on the record says what is told.
Result<Changed> SqlLease::set_end(const Request& told, Millis in, Deadline deadline,
                                  Cancel cancel) {
  const std::string record = format_lock_record(told);
  return change(
      [&] { return statements_.renew(told.owner.id, in, has_name_, known_record_, record); },
      deadline, cancel);
}

Error SqlLease::lost(const Changed& found) {
  const std::string key = util::in_quotes(request_.key);
  const std::string here = database_->shown() + ": ";
  Error error{Errc::lost, here + "the lease of " + key + " expired before it was renewed"};
  if (!found.role) {
    error.message =
        here + "the row of " + key + " is not there any more: it expired, or somebody deleted it";
  } else if (found.role == LockRow::Role::broken) {
    error = taken_away(database_->shown(), request_.key, found.why);
    (void)session_->ask(statements_.leave({&request_.owner.id, 1}),
                        after(Clock::now(), kForgetting), Cancel());
  }
  session_->close();  // its name would keep others out
  loss_ = error;
  return error;
}

Result<void> SqlLease::renew(Deadline deadline, Cancel cancel) {
  if (loss_) return *loss_;
  const Deadline asked = Clock::now();
  const auto done = set_end(request_, request_.ttl, deadline, cancel);
  if (!done) return not_told(done.error());
  if (!done.value().is_done) return lost(done.value());
  if (database_->locks_rows() && !done.value().has_row_session) {
    return Error{Errc::lost, session_->server() +
                                 ": the connection that kept other programs out of " +
                                 util::in_quotes(request_.key) + " has ended"};
  }
  valid_until_ = trusted_until(asked, request_.ttl);
  if (!has_name_ && !is_resumed_) {
    const Reply taken =
        session_->ask(statements_.take_name(request_.owner.id, request_.ttl), deadline, cancel);
    has_name_ = taken.ok() && is_true(first_row(last_answer(taken)), 0);
  }
  listen();
  return {};
}

Result<void> SqlLease::end_command(Deadline until, Deadline deadline, Cancel cancel) {
  if (loss_) return *loss_;
  request_.owner.ended = true;
  request_.owner.pid = 0;
  Request rest = request_;
  rest.ttl = std::max(remaining(until), Millis{1});
  // Others add that where clocks differ.
  const Millis skew = database_->is_without_session_locks() ? Heartbeats::kMostSkew : Millis{0};
  const auto done = set_end(rest, rest.ttl - skew, deadline, cancel);
  if (!done) return not_told(done.error());
  if (!done.value().is_done) return lost(done.value());
  session_->close();
  return {};
}

int SqlLease::event_fd() {
  if (database_->is_without_session_locks()) return -1;
  if (!events_) {
    events_.reset(epoll_create1(EPOLL_CLOEXEC));
    listen();
  }
  return events_.get();
}

// A descriptor that is closed leaves the set by itself.
void SqlLease::listen() {
  if (!events_ || session_->broken() || listens_to_ == session_->fd()) return;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  if (epoll_ctl(events_.get(), EPOLL_CTL_ADD, session_->fd(), &event) == 0) {
    listens_to_ = session_->fd();
  }
}

// A row that is not there may have been deleted by an earlier try whose answer was lost.
Result<void> SqlLease::leave(const MakeText& text, bool writes_mark, Deadline deadline,
                             Cancel cancel) {
  if (loss_) return *loss_;
  const auto done = change(text, deadline, cancel);
  const bool again = std::exchange(was_released_, true) || (done && done.value().is_repeated);
  if (!done) return writes_mark ? done.error() : not_told(done.error());
  const bool is_gone = !writes_mark && again && !done.value().role;
  if (!done.value().is_done && !is_gone) return lost(done.value());
  session_->close();
  return {};
}

Result<std::optional<Mark>> SqlLease::find_mark(Backend&, const MarkName& name, Deadline deadline) {
  Conversation over_this(database_, *session_);
  return dlock::find_mark(*make_records(over_this), name, deadline);
}

}  // namespace

std::unique_ptr<Lease> make_lease(std::shared_ptr<const Database> database,
                                  std::unique_ptr<Session> session, Grant grant) {
  return std::make_unique<SqlLease>(std::move(database), std::move(session), std::move(grant));
}

}  // namespace dlock::sql
