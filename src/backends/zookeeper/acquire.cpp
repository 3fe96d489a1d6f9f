// Queue.   Our node is in the queue of the lock (queue_node.cpp), and queue.cpp says whether it is
//          our turn.  A client of a slots lock that is among the first N needs a second node before
//          it holds the lock: that of a slot number, of which it creates the lowest that is free.
//          It deletes both in one request, so that the next holder is woken once.
//
// Waiting. For one event, by a watch.  Meanwhile a sync is sent as often as a holder sends a proof
//          (LossClock::interval()), in place of the library's pings: see Proof.
//
// Gone.    If a list lacks our node, the list is no answer.  The next look searches the queue for
//          the node, by its uuid, and makes a new one at the end if it is not there.
//
// Outages. When the connection is lost, everything is asked again over the next one.  The session,
//          and our node, may have outlived the outage.  If the session has ended, so have its
//          nodes, and our place in the queue is lost.
//
// Slow servers.  Each new connection keeps the session alive, and with it our node.  If our node is
//          the first in the queue and each answer arrives too late, no client can acquire the lock.
//          So the place is given up when connections have been useless for as long as the servers
//          would have kept the session of a silent client.
//
// Proof.   A hold begins with a session that surely lives for more than half of its timeout
//          (loss_clock.cpp).  In steps, until it does: 1. one request that needs a majority, behind
//          the syncs that a waiter sends all the time; 2. after a pause of this process or of the
//          server, a second one; 3. if the server is too slow, one over a new connection.  That is
//          the last step, since at maxClientCnxns another waiter may take the connection that we
//          give up.
//
// Leaving. Whatever the reason, our nodes are deleted.  If it is in doubt whether a create made
//          one, the session is ended instead.  Either is repeated until the servers confirm it; if
//          none can be connected to for a while, or none answers within the connect timeout, the
//          node stays until the session times out.
#include "backends/zookeeper/acquire.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "backends/zookeeper/look.hpp"
#include "backends/zookeeper/queue.hpp"
#include "backends/zookeeper/queue_node.hpp"
#include "backends/zookeeper/slot_number.hpp"
#include "backends/zookeeper/zookeeper_lease.hpp"
#include "core/acquire_loop.hpp"
#include "core/lock_record.hpp"
#include "util/duration.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"

namespace dlock::zookeeper {
namespace {

constexpr unsigned kMostVanished = 20;  // until something else must be wrong
constexpr unsigned kMostProofs = 3;

class Acquisition final : public AcquireSteps {
 public:
  Acquisition(std::shared_ptr<const Place> place, const Request& request, const Wait& wait,
              Patience& patience)
      : place_(std::move(place)),
        request_(request),
        wait_(wait),
        patience_(patience),
        node_(*place_, request),
        slot_(node_.lock(), node_.uuid(), !place_->auth.empty()) {}

  Result<Attempt> attempt() override;
  Result<LockInfo> describe() override;
  Result<bool> wait(Deadline until) override;
  void recover(const Error& why) override;
  Result<void> leave() override;

 private:
  Result<void> open_session();
  void forget_session(const Error& why);
  Result<void> look();
  Result<void> doubt_node();
  Decision decide_by(const std::vector<std::string>& children) const {
    return decide(children, node_.name(), request_.mode != Mode::slots || slot_.number() != 0);
  }
  Result<bool> take(unsigned slot, unsigned& proofs);
  Result<void> prove(unsigned number);
  Result<bool> watch();
  Result<void> hear(const Call& call);
  std::unique_ptr<Lease> lease();
  std::string seen() const;
  struct Position {
    std::vector<NodeName> queue;
    std::size_t holders = 0;
    std::optional<std::size_t> ahead;  // waiters before us; none: a slot is all that we lack
  };
  Position position() const;

  template <class Ask>
  auto ask(Ask ask) {
    return session_->persist(ask, patience_.call_until(), wait_.cancel);
  }

  const std::shared_ptr<const Place> place_;
  const Request& request_;
  const Wait& wait_;
  Patience& patience_;

  std::unique_ptr<Session> session_;
  QueueNode node_;
  SlotNumber slot_;
  std::vector<std::string> children_;  // of the lock, as they were last listed
  Decision decision_;                  // by them
  bool waited_ = false;
  // Since then there have been connections, but waiting has not worked over any of them.
  std::optional<Deadline> useless_since_;
  bool told_of_timeout_ = false;
};

Result<void> Acquisition::open_session() {
  if (!session_) session_ = std::make_unique<Session>(place_, request_.ttl);
  if (auto ok = session_->open(patience_.call_until(), wait_.cancel); !ok) return ok;
  if (session_->timeout() != request_.ttl && !std::exchange(told_of_timeout_, true)) {
    util::log(util::Level::warning, place_->shown + ": grants a TTL of " +
                                        util::format_duration(session_->timeout()) +
                                        " instead of " + util::format_duration(request_.ttl) +
                                        " (see minSessionTimeout and maxSessionTimeout there)");
  }
  if (!useless_since_) useless_since_ = Clock::now();
  return {};
}

// The session has ended, or is given up: the next attempt begins at the end of the queue.
void Acquisition::forget_session(const Error& why) {
  util::log(util::Level::detail, why.message + "; queueing again, at the end");
  session_.reset();
  node_.forget();
  slot_.forget();
  useless_since_.reset();
}

Result<Acquisition::Attempt> Acquisition::attempt() {
  using Kind = Decision::Kind;
  if (auto ok = open_session(); !ok) return ok.error();
  unsigned proofs = 0;  // since it is our turn
  unsigned vanished = 0;
  for (;;) {
    if (auto ok = look(); !ok) return ok.error();
    switch (decision_.kind) {
      case Kind::gone:
        if (++vanished > kMostVanished) return node_.vanishes();
        if (auto ok = doubt_node(); !ok) return ok.error();
        continue;
      case Kind::refused:
        return mode_conflict(request_.key, request_.claim(), decision_.held);
      case Kind::granted: {
        auto taken = take(decision_.slot, proofs);
        if (!taken) return taken.error();
        if (*taken) return Attempt{lease(), {}};
        continue;
      }
      case Kind::watch_node:
      case Kind::watch_children:
        return Attempt{nullptr, seen()};
    }
  }
}

// Makes sure that our node is in the queue, and lists the queue.
Result<void> Acquisition::look() {
  std::optional<std::vector<std::string>> listed;
  if (node_.name().empty()) {
    auto joined = node_.join(*session_, patience_.call_until(), wait_.cancel);
    if (!joined) return joined.error();
    listed = std::move(*joined);
  }
  if (slot_.in_doubt()) {
    if (auto ok = slot_.settle(*session_, patience_.call_until(), wait_.cancel); !ok) {
      return ok.error();
    }
  }
  if (!listed) {
    const auto answers =
        ask([&] { return std::array{get_children(session_->handle(), node_.lock(), Watch::no)}; });
    if (!answers) return answers.error();
    const Call& answer = answers.value()[0];
    if (!answer->ok() && answer->code != ZNONODE) {
      return session_->refused(answer, "list " + node_.lock());
    }
    listed = answer->names;
  }
  children_ = std::move(*listed);
  decision_ = decide_by(children_);
  if (decision_.kind != Decision::Kind::gone) patience_.answered();
  return {};
}

// After a list that lacks our node, which is no answer: somebody has deleted the node, or the
// server does not tell what there is.  A client that waits must not have a number, since a holder
// before it could wait for that.
Result<void> Acquisition::doubt_node() {
  node_.doubt();
  if (slot_.number() == 0) return {};
  (void)session_->end(patience_.call_until());
  forget_session({Errc::lost, place_->shown + ": the node was deleted by somebody else"});
  return open_session();
}

// It is our turn: takes the slot, if one is needed, and proves that the session lives.  False: look
// again.
Result<bool> Acquisition::take(unsigned slot, unsigned& proofs) {
  if (slot != 0) {
    auto taken = slot_.take(*session_, slot, patience_.call_until(), wait_.cancel);
    if (!taken || !*taken) return taken;
  }
  if (session_->clock().is_fresh(Clock::now())) return true;
  if (auto ok = prove(++proofs); !ok) return ok.error();
  // After a later proof, our node may have been deleted meanwhile: look first, and then this
  // function returns true at once.
  return proofs == 1 && session_->clock().is_fresh(Clock::now());
}

// For the `number`-th time since it is our turn.  One proof is enough behind the syncs that were
// sent while waiting.  After a pause of this process or of the server a second one is needed, and
// if the server is slow, one over a new connection.
Result<void> Acquisition::prove(unsigned number) {
  if (number > kMostProofs) {
    return Error{Errc::unreachable,
                 place_->shown + ": the server answers too slowly for this --ttl"};
  }
  if (number == 2 && util::wait_readable(wait_.cancel.fd(), session_->clock().next_proof())) {
    return Error{Errc::cancelled, "stopped waiting for " + place_->shown};
  }
  if (number == 3) {
    session_->hang_up();
    if (auto ok = session_->open(patience_.call_until(), wait_.cancel); !ok) return ok;
  }
  const Call proven = zookeeper::prove(session_->handle(), node_.path());
  auto heard = hear(proven);
  if (proven->code == ZNONODE) return {};  // as the next list will tell
  if (!heard) return heard;
  session_->clock().proved(proven->sent, Clock::now());
  return {};
}

// A server that is silent is not given up earlier than the library would do it.
Result<void> Acquisition::hear(const Call& call) {
  const Deadline silent_at = std::min(after(Clock::now(), session_->timeout()), wait_.until);
  const Deadline deadline = std::max(patience_.call_until(), silent_at);
  if (auto ok = session_->wait({call}, deadline, wait_.cancel); !ok) return ok;
  return call->ok() ? Result<void>() : session_->refused(call, "look at " + node_.lock());
}

// The client behind us may have listed us as waiting: our record, written anew, tells it.
std::unique_ptr<Lease> Acquisition::lease() {
  const bool followed =
      request_.mode == Mode::slots && queue_of(children_).back().name != node_.name();
  Grant grant{.request = request_,
              .path = node_.path(),
              .slot = slot_.number(),
              .slot_path = slot_.path(),
              .fence = node_.fence(),
              .announced = nullptr};
  if (waited_ || followed) {
    grant.announced = set(session_->handle(), grant.path, format_lock_record(request_));
  }
  return make_lease(place_, std::move(session_), std::move(grant));
}

// Sets the watch for what we wait for.  False if the queue has changed since it was listed.
Result<bool> Acquisition::watch() {
  session_->take_news();
  Watch list = Watch::yes;
  // Not exists(), which would leave a watch behind on a node that is gone, and tells nothing of one
  // that we may not read (CVE-2024-23944).
  if (decision_.kind == Decision::Kind::watch_node) {
    const std::string path = node_.path_of(decision_.node);
    const auto answers =
        ask([&] { return std::array{zookeeper::get(session_->handle(), path, Watch::yes)}; });
    if (!answers) return answers.error();
    const Call& answer = answers.value()[0];
    if (answer->code == ZNONODE) return false;
    if (!answer->ok() && answer->code != ZNOAUTH) return session_->refused(answer, "watch " + path);
    if (answer->ok()) {
      if (request_.mode != Mode::slots && answer->stat.version == 0) return true;
      // The waiter before us may have acquired the lock, and written its record, before the watch
      // was set: the watch would never report it.
      list = Watch::no;
    }
  }
  const auto answers =
      ask([&] { return std::array{get_children(session_->handle(), node_.lock(), list)}; });
  if (!answers) return answers.error();
  const Call& answer = answers.value()[0];
  if (answer->code == ZNONODE) return false;
  if (!answer->ok()) return session_->refused(answer, "watch " + node_.lock());
  const std::string told = seen();
  children_ = answer->names;
  const Decision now = decide_by(children_);
  if (now.kind != decision_.kind || now.node != decision_.node) return false;
  // The holders of slots change all the time: a waiter far behind them is not told of each.
  return request_.mode == Mode::slots || seen() == told;
}

Result<bool> Acquisition::wait(Deadline until) {
  waited_ = true;
  auto watched = watch();
  if (!watched) return watched.error();
  if (!*watched) return true;
  useless_since_.reset();
  while (!session_->take_news()) {
    if (until <= Clock::now()) return false;
    const Deadline due = session_->clock().next_sync();
    if (auto ok = session_->wait_for_news(std::min(until, due), wait_.cancel); !ok) {
      return ok.error();
    }
    if (!session_->connected()) return session_->silent();
    if (Clock::now() < due) continue;
    const Call synced = sync(session_->handle(), node_.lock());
    if (auto ok = hear(synced); !ok) return ok.error();
    session_->clock().synced(synced->sent, Clock::now());
  }
  return true;
}

// Our place among the waiters, and the names of the holders.
std::string Acquisition::seen() const {
  if (!wait_.on_blocked) return {};  // nobody wants to know, and the queue may be long
  const Position position = this->position();
  std::string out = std::to_string(position.ahead.value_or(0));
  for (std::size_t i = 0; i < position.holders; ++i) out += ' ' + position.queue[i].name;
  return out;
}

Result<LockInfo> Acquisition::describe() {
  auto others = children_;
  std::erase(others, node_.name());
  auto info = look_at(*session_, node_.lock(), request_.key, others, false, patience_.call_until(),
                      wait_.cancel);
  if (!info) return info;
  const Position position = this->position();
  if (position.ahead) {
    info->place = static_cast<unsigned>(*position.ahead) + 1;
    info->waiter_count = static_cast<unsigned>(position.queue.size() - position.holders);
  }
  return info;
}

Acquisition::Position Acquisition::position() const {
  Position out{.queue = queue_of(children_)};
  out.holders = count_holders(out.queue);
  const auto ours = std::find_if(out.queue.begin(), out.queue.end(),
                                 [&](const NodeName& node) { return node.name == node_.name(); });
  const auto place = static_cast<std::size_t>(ours - out.queue.begin());
  if (place >= out.holders) out.ahead = place - out.holders;
  return out;
}

void Acquisition::recover(const Error& why) {
  const bool is_useless = why.code == Errc::unreachable && useless_since_ &&
                          Clock::now() > after(*useless_since_, session_->timeout());
  if (is_useless) (void)leave();
  if (is_useless || why.code == Errc::lost) forget_session(why);
}

// Waits until the servers confirm that nothing of ours is left.  A create in doubt is not looked
// for: a server that delays its reply delays the answer to a question, too.  The end of the session
// needs no answer to be carried out behind the create.
Result<void> Acquisition::leave() {
  if (!session_ || !session_->handle()) return {};
  const Deadline deadline = after(Clock::now(), place_->patience);
  const auto ok_if = [&](bool confirmed) {
    return confirmed ? Result<void>() : session_->silent();
  };
  if (node_.in_doubt() || slot_.in_doubt()) return ok_if(session_->end(deadline));
  if (slot_.number() != 0) {
    // Not one by one: a second request to delete the number could hit that of the next holder.
    if (!session_->open_in_farewell(deadline, Cancel())) return ok_if(session_->expired());
    const auto gone = session_->persist(
        [&] { return std::array{remove_both(session_->handle(), node_.path(), slot_.path())}; },
        deadline, Cancel());
    if (!gone || !gone.value()[0]->ok()) return ok_if(session_->end(deadline));
    session_->close();
    return {};
  }
  bool left = node_.name().empty() || (session_->open_in_farewell(deadline, Cancel()) &&
                                       node_.remove(*session_, deadline, Cancel()));
  left = left || session_->expired();
  auto result = ok_if(left);
  session_->close();
  return result;
}

}  // namespace

Result<std::unique_ptr<Lease>> acquire(const std::shared_ptr<const Place>& place,
                                       const Request& request, const Wait& wait) {
  Patience patience(wait, place->patience, request.key);
  Acquisition acquisition(place, request, wait, patience);
  return acquire_loop(acquisition, request, wait, patience);
}

}  // namespace dlock::zookeeper
