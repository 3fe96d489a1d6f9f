// Order.    The lease excludes all that use dlock, so none of these waits for the row, but for that
//           of a session which has not ended yet.  The row excludes all others that lock it.  It
//           is in a table of its own: each grant locks the row in the table of keys.
// Waiting.  A server can keep a session waiting whose client has gone, in the way of others.
//           PostgreSQL notices.  MySQL does not, and FLUSH TABLES WITH READ LOCK waits for such a
//           session, and each renewal for that: so there a client waits for ten seconds at a
//           time, and each time at the end of the queue.  A client that gives up ends the session.
//           The lease is renewed meanwhile, and once more when the row is locked.
// Server.   A name can lead to another server than a moment ago.  So the session of the row has a
//           session lock, which each renewal looks for on the server that renews the lease.
// The end.  The server ends the session, and with it the row lock, when nothing came from it for a
//           ttl, or ten seconds if the client does not say that it has heard of the row; each
//           renewal says something.  If the session has ended, other programs may be in: that is a
//           loss.  The lease is released when the job has ended.
#include "backends/sql/row_lease.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "backends/sql/statements.hpp"
#include "util/fd.hpp"
#include "util/text.hpp"

namespace dlock::sql {
namespace {

constexpr Millis kWorthAWord{1'000};
constexpr Millis kRenewsAtLeast{20'000};
constexpr Millis kRenewAgain{1'000};
constexpr Millis kLongestSilence{60'000};

class RowLease final : public Lease {
 public:
  RowLease(std::unique_ptr<Lease> lease, std::unique_ptr<Session> row, std::string free_row)
      : lease_(std::move(lease)), row_(std::move(row)), free_row_(std::move(free_row)) {}

  const std::string& owner_id() const override { return lease_->owner_id(); }
  std::optional<std::uint64_t> fence() const override { return lease_->fence(); }
  std::optional<unsigned> slot() const override { return lease_->slot(); }
  Deadline valid_until() const override { return lease_->valid_until(); }

  // An answer that does not come is waited for again the next time: to hang up would be to give the
  // row up, in the middle of the job.
  Result<void> renew(Deadline deadline, Cancel cancel) override {
    if (loss_) return *loss_;
    if (!row_->under_way()) row_->send("SELECT 1");
    auto renewed = lease_->renew(deadline, cancel);
    const Reply answer = row_->receive(deadline, cancel);
    if (!renewed && renewed.error().code == Errc::lost) {
      loss_ = renewed.error();
    } else if (!answer.ok() && !row_->under_way()) {  // an error ends the transaction
      loss_ =
          Error{Errc::lost, answer.error->message + "; nothing keeps other programs out any more"};
    }
    if (loss_) return *loss_;
    if (!renewed || answer.ok()) return renewed;
    const bool cancelled = answer.error->code == Errc::cancelled;
    return Error{cancelled ? Errc::cancelled : Errc::unreachable, answer.error->message};
  }
  int event_fd() override {
    if (!events_) {
      events_.reset(epoll_create1(EPOLL_CLOEXEC));
      for (const int fd : {lease_->event_fd(), row_->fd()}) {
        epoll_event event{};
        event.events = EPOLLIN | EPOLLRDHUP;
        epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd, &event);
      }
    }
    return events_.get();
  }
  Result<void> end_command(Deadline until, Deadline deadline, Cancel cancel) override {
    if (loss_) return *loss_;
    return lease_->end_command(until, deadline, cancel);
  }
  Result<void> release(Deadline deadline, Cancel cancel) override {
    let_go(deadline);
    return lease_->release(deadline, cancel);
  }
  Result<void> complete(const Completion& completion, Deadline deadline, Cancel cancel) override {
    if (loss_) return *loss_;
    let_go(deadline);
    return lease_->complete(completion, deadline, cancel);
  }
  Result<std::optional<Mark>> find_mark(Backend& backend, const MarkName& name,
                                        Deadline deadline) override {
    return lease_->find_mark(backend, name, deadline);
  }

 private:
  // The next holder does not wait for the server to notice that this session has gone.
  void let_go(Deadline deadline) {
    if (!row_->broken() && !row_->under_way()) {
      (void)row_->ask(free_row_, std::min(deadline, after(Clock::now(), kFarewell)), Cancel());
    }
    row_->close();
  }

  const std::unique_ptr<Lease> lease_;
  const std::unique_ptr<Session> row_;
  const std::string free_row_;  // the text
  std::optional<Error> loss_;
  Fd events_;  // epoll: of the lease, and the session
};

// The row of one request, on its way to be locked.
class RowWait {
 public:
  RowWait(const std::shared_ptr<const Database>& database, Lease& lease, const Request& request,
          const Wait& wait, Patience& patience)
      : database_(database),
        statements_(*database, request.key),
        lease_(lease),
        request_(request),
        wait_(wait),
        patience_(patience) {}

  Result<std::unique_ptr<Session>> run() {
    auto opened = database_->open(patience_.call_until(), wait_.cancel);
    if (!opened) return opened.error();
    row_ = opened->get();
    heard(lease_.valid_until() - request_.ttl);
    // A renewal looks for the session of the row, which is not there at once.
    renewal_ = std::max(renewal_, after(Clock::now(), std::min(request_.ttl / 3, kRenewAgain)));
    tell_at_ = after(Clock::now(), kWorthAWord);
    const auto locked = wait_for_row();
    if (!locked) return locked.error();
    if (last_answer(locked.value()).rows.empty()) {
      return Error{Errc::unreachable, row_->server() + ": the row of " +
                                          util::in_quotes(request_.key) +
                                          " was deleted, or this is no primary"};
    }
    row_->send(statements_.keep_row(request_.ttl));
    const auto renewed = lease_.renew(patience_.call_until(), wait_.cancel);
    const Reply kept = row_->receive(patience_.call_until(), wait_.cancel);
    if (!renewed) return on_its_way(renewed.error());
    if (!kept.ok()) return on_its_way(*kept.error);
    return std::move(*opened);
  }

 private:
  // The lease is renewed meanwhile.
  Result<Reply> wait_for_row() {
    const bool once = patience_.tries_once();
    const std::string text = statements_.lock_row(request_, once);
    row_->send(text);
    for (;;) {
      const Deadline until = once ? patience_.call_until() : wait_.until;
      Reply reply = row_->receive(std::min({renewal_, tell_at_, until}), wait_.cancel);
      if (reply.ok()) return reply;
      if (reply.error->code == Errc::cancelled) return *reply.error;
      const Deadline now = Clock::now();
      const bool waits = row_->under_way();
      if (!waits && reply.trouble != Trouble::passing) return *reply.error;
      if (!waits || now >= std::min(tell_at_, until)) tell();
      if (now >= until || (!waits && once)) return busy();
      if (!waits) row_->send("ROLLBACK; " + text);
      if (now < renewal_) continue;
      if (auto ok = renew(); !ok) return ok.error();
    }
  }

  // Fails if the lease is over, or its server is silent: all begins anew then.
  Result<void> renew() {
    const Deadline asked = Clock::now();
    const auto renewed = lease_.renew(patience_.call_until(), wait_.cancel);
    if (renewed) {
      heard(asked);
      return {};
    }
    renewal_ = after(Clock::now(), kRenewAgain);
    const bool may_go_on = renewed.error().code == Errc::unreachable &&
                           Clock::now() < std::min(lease_.valid_until(), silent_too_long_at_);
    return may_go_on ? Result<void>() : on_its_way(renewed.error());
  }
  void heard(Deadline asked) {
    renewal_ = after(asked, std::min(request_.ttl / 3, kRenewsAtLeast));
    silent_too_long_at_ = after(asked, kLongestSilence);
  }

  // The job has not begun: nothing is lost.
  static Error on_its_way(Error error) {
    if (error.code == Errc::lost) error.code = Errc::unreachable;
    return error;
  }

  void tell() {
    if (std::exchange(tell_at_, kNever) == kNever || !wait_.on_blocked) return;
    LockInfo info{.key = request_.key, .mode = request_.mode, .slots = request_.slots};
    info.holders.push_back({.foreign = "a program that " + database_->foreign_lock()});
    wait_.on_blocked(info);
  }
  Error busy() const {
    return {Errc::busy, util::in_quotes(request_.key) + " is busy: another program " +
                            database_->foreign_lock()};
  }

  const std::shared_ptr<const Database>& database_;
  const Statements statements_;
  Lease& lease_;
  const Request& request_;
  const Wait& wait_;
  Patience& patience_;
  Session* row_ = nullptr;
  Deadline renewal_ = kNever;
  Deadline silent_too_long_at_ = kNever;
  Deadline tell_at_ = kNever;  // once
};

}  // namespace

Result<std::unique_ptr<Lease>> lock_row(const std::shared_ptr<const Database>& database,
                                        std::unique_ptr<Lease> lease, const Request& request,
                                        const Wait& wait, Patience& patience) {
  auto row = RowWait(database, *lease, request, wait, patience).run();
  if (!row) {
    (void)lease->release(patience.call_until(), Cancel());
    return row.error();
  }
  return std::unique_ptr<Lease>(std::make_unique<RowLease>(std::move(lease), std::move(*row),
                                                           database->fill("{free_row}", {})));
}

}  // namespace dlock::sql
