// Renewal.  The servers keep a session for as long as they hear from it, so any word would do; what
//          is asked is what proves something (loss_clock.cpp): a request that needs a majority,
//          and behind it whether our node is still there, with a watch on it.
// Pace.    The proof is worth more if it is made more often than the engine calls renew(), so there
//          is a timer behind event_fd(), too.
// Killed.  A holder that is killed sends nothing, and nothing else keeps the lock.  The servers end
//          its session one timeout after they last heard of it, and delete its nodes; then the next
//          waiter's watch fires.  A killed waiter is the same.  The node above them is a container,
//          which the servers delete when it has been empty for a while; servers before 3.5 have no
//          containers, and keep it.
#include "backends/zookeeper/zookeeper_lease.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <array>

#include "backends/zookeeper/completing.hpp"
#include "core/lock_record.hpp"
#include "core/marks.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock::zookeeper {
namespace {

constexpr Millis kReason{1'000};

class ZookeeperLease final : public Lease {
 public:
  ZookeeperLease(std::shared_ptr<const Place> place, std::unique_ptr<Session> session, Grant grant)
      : place_(std::move(place)),
        session_(std::move(session)),
        request_(std::move(grant.request)),
        path_(std::move(grant.path)),
        slot_(grant.slot),
        slot_path_(std::move(grant.slot_path)),
        fence_(grant.fence),
        announced_(std::move(grant.announced)) {}
  // When our node was deleted, others can be among the holders, but our number is ours until the
  // command has ended, and that is now.
  ~ZookeeperLease() override {
    if (loss_ && slot_ != 0) session_->close();
  }

  std::optional<std::uint64_t> fence() const override { return fence_; }
  std::optional<unsigned> slot() const override {
    return slot_ == 0 ? std::nullopt : std::optional(slot_);
  }
  const std::string& owner_id() const override { return request_.owner.id; }
  std::optional<Millis> granted_ttl() const override { return session_->timeout(); }
  Deadline valid_until() const override { return session_->clock().valid_until(); }
  Result<void> renew(Deadline deadline, Cancel cancel) override;
  Result<void> end_command(Deadline until, Deadline deadline, Cancel cancel) override;
  int event_fd() override;
  bool has_news() override;
  Result<void> release(Deadline deadline, Cancel cancel) override;
  Result<void> complete(const Completion& completion, Deadline deadline, Cancel cancel) override;

 private:
  Result<void> prove(Deadline deadline, Cancel cancel);
  void listen();
  Error lose(Error error) {
    loss_ = error;
    return error;
  }
  Error lose_node(Deadline deadline, Cancel cancel);
  Result<void> find_out(const Completing& completing, Deadline deadline, Cancel cancel);

  const std::shared_ptr<const Place> place_;
  const std::unique_ptr<Session> session_;
  Request request_;
  const std::string path_;
  const unsigned slot_;
  std::string slot_path_;  // "" if there is no such node, or the end of the session is to delete it
  const std::uint64_t fence_;
  Call announced_;
  std::optional<Error> loss_;
  bool deleting_ = false;  // release() or complete() was asked for, and perhaps done

  Fd events_;  // epoll: the connection and the timer
  Fd timer_;
};

Result<void> ZookeeperLease::renew(Deadline deadline, Cancel cancel) {
  if (loss_) return *loss_;
  auto proof = prove(deadline, cancel);
  listen();
  return proof;
}

Result<void> ZookeeperLease::prove(Deadline deadline, Cancel cancel) {
  const auto asked = session_->persist(
      [this] {
        std::vector<Call> calls{zookeeper::prove(session_->handle(), path_),
                                exists(session_->handle(), path_, Watch::yes)};
        // Who is behind us may have to know it.
        if (announced_ && announced_->done && announced_->in_doubt()) {
          announced_ = set(session_->handle(), path_, format_lock_record(request_));
        }
        return calls;
      },
      deadline, cancel);
  if (!asked) {
    return session_->expired() ? lose(asked.error()) : asked.error();
  }
  const Call& proven = asked.value()[0];
  const Call& found = asked.value()[1];
  session_->take_news();
  if (session_->expired()) return lose(session_->silent());
  const bool other = found->ok() && static_cast<std::uint64_t>(found->stat.czxid) != fence_;
  if (found->code == ZNONODE || other) return lose_node(deadline, cancel);
  if (!found->ok() || !proven->ok()) {
    Error error = session_->refused(found->ok() ? proven : found, "look at " + path_);
    if (error.code != Errc::lost) error.code = Errc::unreachable;
    return error;
  }
  session_->clock().proved(proven->sent, Clock::now());
  return {};
}

Result<void> ZookeeperLease::end_command(Deadline, Deadline deadline, Cancel cancel) {
  if (loss_) return *loss_;
  request_.owner.ended = true;
  request_.owner.pid = getpid();
  const auto asked = session_->persist(
      [this] { return std::array{set(session_->handle(), path_, format_lock_record(request_))}; },
      deadline, cancel);
  listen();
  if (!asked) return session_->expired() ? lose(asked.error()) : asked.error();
  const Call& done = asked.value()[0];
  if (done->code == ZNONODE) return lose_node(deadline, cancel);
  if (done->ok()) return {};
  Error error = session_->refused(done, "write to " + path_);
  if (error.code != Errc::lost) error.code = Errc::unreachable;
  return error;
}

// By force-release, which has left a note; or by hand.
Error ZookeeperLease::lose_node(Deadline deadline, Cancel cancel) {
  const std::string note =
      place_->base() + '/' + std::string(kBroken) + '/' + node_of(request_.owner.id);
  const auto asked =
      session_->persist([&] { return std::array{get(session_->handle(), note, Watch::no)}; },
                        std::min(deadline, after(Clock::now(), kReason)), cancel);
  if (asked && asked.value()[0]->ok()) {
    remove(session_->handle(), note, -1);
    return lose(taken_away(place_->shown, request_.key, asked.value()[0]->text));
  }
  return lose({Errc::lost, place_->shown + ": the node " + util::printable(path_) +
                               " was deleted by somebody else"});
}

int ZookeeperLease::event_fd() {
  if (!events_) {
    Fd timer = util::make_timer();
    Fd events(epoll_create1(EPOLL_CLOEXEC));
    epoll_event event{};
    event.events = EPOLLIN;
    if (!timer || !events || epoll_ctl(events.get(), EPOLL_CTL_ADD, timer.get(), &event) != 0) {
      return -1;
    }
    timer_ = std::move(timer);
    events_ = std::move(events);
    exists(session_->handle(), path_, Watch::yes);  // its answer is no news
    listen();
  }
  return events_.get();
}

bool ZookeeperLease::has_news() {
  session_->look();
  session_->add_to(events_);
  return session_->take_news() || session_->expired() || !session_->connected() ||
         util::wait_readable(timer_.get(), Deadline{});
}

void ZookeeperLease::listen() {
  if (!events_) return;
  session_->add_to(events_);
  if (loss_) {
    util::set_timer(timer_, Clock::now());  // stays readable: there is nothing to wait for
  } else {
    util::set_timer(timer_, after(Clock::now(), session_->clock().interval()));
  }
}

// The node in the queue and that of a number are deleted together, so that the next holder is woken
// once, and finds the number free; and so that a request that is repeated deletes nothing: by then,
// another client may have created a node for the number.
Result<void> ZookeeperLease::release(Deadline deadline, Cancel cancel) {
  if (loss_) {
    session_->close();
    return *loss_;
  }
  for (;;) {
    if (auto ok = session_->prepare(deadline, cancel); !ok) return ok;
    const Call done = slot_path_.empty() ? remove(session_->handle(), path_, -1)
                                         : remove_both(session_->handle(), path_, slot_path_);
    const auto waited = session_->wait({done}, deadline, cancel);
    const bool again = deleting_;
    deleting_ = deleting_ || !waited || done->in_doubt();
    if (session_->expired()) return again ? Result<void>() : lose(session_->silent());
    if (!waited) return waited.error();
    if (done->ok() || (done->code == ZNONODE && again && slot_path_.empty())) {
      session_->close();
      return {};
    }
    if (done->code == ZNONODE && !slot_path_.empty()) {  // of whichever
      slot_path_.clear();
      continue;
    }
    if (done->code == ZNONODE) {
      const Error error = lose_node(deadline, cancel);
      session_->close();
      return error;
    }
    if (!done->in_doubt()) {  // not allowed to: what nobody can forbid is to end the session
      session_->close();
      return {};
    }
    if (Clock::now() >= deadline) return session_->silent();
  }
}

// The request is repeated until it is known whether it was carried out; see completing.cpp.
Result<void> ZookeeperLease::complete(const Completion& completion, Deadline deadline,
                                      Cancel cancel) {
  if (loss_) {
    session_->close();
    return *loss_;
  }
  Completing completing(place_, record_of({request_.key, completion.period}),
                        format_mark(request_.owner, fence_, completion.remember), path_);
  for (;;) {
    if (auto ok = session_->prepare(deadline, cancel); !ok) return ok;
    const Call done = completing.ask(*session_);
    const auto waited = session_->wait({done}, deadline, cancel);
    deleting_ = deleting_ || !waited || done->in_doubt();
    if (waited && done->ok()) {
      session_->close();
      return {};
    }
    if (session_->expired() || (waited && Completing::lock_is_gone(*done))) {
      return find_out(completing, deadline, cancel);
    }
    if (!waited) return waited.error();
    if (!done->in_doubt()) {
      auto ok = completing.adapt(*session_, done, deadline, cancel);
      if (!ok && !session_->expired()) return ok.error();
    }
    if (Clock::now() >= deadline) return session_->silent();
  }
}

// After the lock has ended.  If a request of complete() ended it, there is a mark by this owner.
Result<void> ZookeeperLease::find_out(const Completing& completing, Deadline deadline,
                                      Cancel cancel) {
  if (deleting_) {
    const auto ours = completing.is_done_by(owner_id(), request_.ttl, deadline, cancel);
    if (!ours) {  // whatever the error is: it is not known whether the lock was lost
      Error error = ours.error();
      if (error.code != Errc::cancelled) error.code = Errc::unreachable;
      return error;
    }
    if (ours.value()) {
      session_->close();
      return {};
    }
  }
  Error error = session_->expired() ? lose(session_->silent()) : lose_node(deadline, cancel);
  session_->close();
  return error;
}

}  // namespace

std::unique_ptr<Lease> make_lease(std::shared_ptr<const Place> place,
                                  std::unique_ptr<Session> session, Grant grant) {
  return std::make_unique<ZookeeperLease>(std::move(place), std::move(session), std::move(grant));
}

}  // namespace dlock::zookeeper
