// One node, made once.  create and getChildren go out together: two requests, one round trip.  When
//          the answer to a create is lost, nobody knows whether there is a node; a second one would
//          wait for the first for ever.  So the next thing that is asked, on whichever server, is
//          sync and then the children, among which a node of ours is known by its uuid.  It counts
//          only if it lives with our session: one of an earlier session will vanish at any moment,
//          and is deleted.  A create that was sent to the server before cannot come late: the
//          session has moved (ZSESSIONMOVED).
// Slots.   A client that is among the first N of the queue needs a number, too, before it holds the
//          lock: a second node, one for each number, of which it creates the lowest that is free
//          (queue.cpp).  Usually one is.  If not, it waits for the children to change, as the first
//          of those behind it does.  So each number that becomes free wakes it, and nobody who
//          waits has one.  A place in the queue comes and goes together with its number, in one
//          request: the next holder is woken once.
// Waiting. On one event (queue.cpp).  Meanwhile a sync is sent as often as a holder sends a proof,
//          in place of the library's pings: see Proof.
// Outages. When the connection is lost, all is asked again over the next one.  The session, and our
//          node, may have outlived the outage.  When the session has ended, so has its node, and
//          the place in the queue is lost.
// Slow     servers.  Each new connection keeps the session alive, and with it our node.  If that is
//          the first in the queue and each answer arrives too late, no client can acquire the lock.
//          So the place is given up when connections have been useless for as long as the servers
//          would have kept the session of a silent client.
// Proof.   A hold begins with a session that surely lives for more than half of its timeout
//          (loss_clock.cpp): one request that needs a majority proves it, behind the syncs that a
//          waiter sends all the time.  A new connection would do for the syncs, but is made only if
//          the server is too slow: it may have no other for this address (maxClientCnxns), and the
//          one that is given up may go to another waiter, which keeps it.
// Limits.  A server whose maxClientCnxns is reached is there and well, so a waiter waits for a
//          connection as it waits for the lock.
// Leaving. Whatever the reason, our nodes are deleted.  If it is in doubt whether a create made
//          one, the session is ended instead.  Either is repeated until the servers confirm it; if
//          none can be connected to for a while, or none answers within the connect timeout, the
//          node stays until the session times out.
#include "backends/zookeeper/acquire.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "backends/zookeeper/look.hpp"
#include "backends/zookeeper/parents.hpp"
#include "backends/zookeeper/queue.hpp"
#include "backends/zookeeper/session.hpp"
#include "backends/zookeeper/slot_number.hpp"
#include "backends/zookeeper/zookeeper_lease.hpp"
#include "core/lock_record.hpp"
#include "core/patience.hpp"
#include "util/duration.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock::zookeeper {
namespace {

using util::in_quotes;

constexpr unsigned kMostCreates = 20;  // until something else must be wrong
constexpr unsigned kMostProofs = 3;

class Acquisition {
 public:
  Acquisition(std::shared_ptr<const Place> place, const Request& request, const Wait& wait)
      : place_(std::move(place)),
        request_(request),
        wait_(wait),
        patience_(wait_, place_->patience, request.key),
        lock_(place_->path_of(request.key)),
        uuid_(uuid_for(request.owner.id)),
        record_(format_lock_record(request)),
        slot_(lock_, uuid_, !place_->auth.empty()) {}

  Result<std::unique_ptr<Lease>> run();

 private:
  Result<std::unique_ptr<Lease>> get();
  Result<void> open_session();
  void forget_session(const Error& why);
  Result<void> join();
  Result<void> remove_node(const std::string& child, Deadline deadline, Cancel cancel);
  Result<void> queue_anew();
  Decision decide_by(const std::vector<std::string>& children) const {
    return decide(children, own_, request_.mode != Mode::slots || slot_.number() != 0);
  }
  Result<bool> find_own();
  Result<Decision> decide_now();
  Result<void> tell(const std::vector<std::string>& children);
  Result<bool> watch(const Decision& decision);
  Result<void> sleep();
  Result<void> hear(const Call& call);
  Result<void> prove(unsigned number);
  std::unique_ptr<Lease> lease();
  bool leave();

  std::string path_of(std::string_view child) const { return lock_ + '/' + std::string(child); }
  Deadline patience() const { return patience_.call_until(); }
  bool time_is_up() const { return wait_.until <= Clock::now(); }
  Error vanishes() const {
    return {Errc::unreachable, place_->shown + ": cannot create a node in " +
                                   util::printable(lock_) + "; it is deleted again and again"};
  }
  Error busy() const { return {Errc::busy, in_quotes(request_.key) + " is busy"}; }

  const std::shared_ptr<const Place> place_;
  const Request& request_;
  const Wait& wait_;
  Patience patience_;
  const std::string lock_;  // its path
  const std::string uuid_;
  const std::string record_;

  std::unique_ptr<Session> session_;
  bool in_doubt_ = false;  // there may be a node
  std::string own_;        // the name of our node; "" if there is none
  std::uint64_t fence_ = 0;
  SlotNumber slot_;
  std::optional<std::vector<std::string>> children_;  // as they came with the create
  // Since then there have been connections, but waiting has not worked over any of them.
  std::optional<Deadline> useless_since_;
  bool waited_ = false;
  bool followed_ = false;  // a waiter for a slot is behind us, and may have listed us as waiting
  bool told_of_timeout_ = false;
  std::string told_;  // our place and the holders that on_blocked was last called with
};

Result<void> Acquisition::open_session() {
  if (!session_) session_ = std::make_unique<Session>(place_, request_.ttl);
  children_.reset();
  if (auto ok = session_->open(patience(), wait_.cancel); !ok) return ok;
  if (session_->timeout() != request_.ttl && !told_of_timeout_) {
    told_of_timeout_ = true;
    util::log(util::Level::warning, place_->shown + ": grants a TTL of " +
                                        util::format_duration(session_->timeout()) +
                                        " instead of " + util::format_duration(request_.ttl) +
                                        " (see minSessionTimeout and maxSessionTimeout there)");
  }
  if (!useless_since_) useless_since_ = Clock::now();
  return {};
}

// It has expired, while we waited or while the servers were gone, or its place was given up: from
// the beginning, at the end of the queue.
void Acquisition::forget_session(const Error& why) {
  util::log(util::Level::detail, why.message + "; queueing again, at the end");
  session_.reset();
  in_doubt_ = false;
  own_.clear();
  slot_.forget();
  useless_since_.reset();
}

// Ok once the servers have answered: the node is gone, or they refuse to delete it.
Result<void> Acquisition::remove_node(const std::string& child, Deadline deadline, Cancel cancel) {
  const auto gone = session_->persist(
      [&] { return std::array{remove(session_->handle(), path_of(child), -1)}; }, deadline, cancel);
  return gone ? Result<void>() : gone.error();
}

// Looks for a node that a create may have made before its answer was lost.
Result<bool> Acquisition::find_own() {
  const Deadline deadline = patience();
  const auto answers = session_->persist(
      [&] {
        return std::array{sync(session_->handle(), lock_),
                          get_children(session_->handle(), lock_, Watch::no)};
      },
      deadline, wait_.cancel);
  if (!answers) return answers.error();
  const Call& listed = answers.value()[1];
  if (listed->code == ZNONODE) {
    in_doubt_ = false;
    return false;
  }
  if (!listed->ok()) return session_->refused(listed, "list " + lock_);
  for (const NodeName& node : queue_of(listed->names)) {
    if (node.uuid != uuid_) continue;
    const auto seen = session_->persist(
        [&] { return std::array{exists(session_->handle(), path_of(node.name), Watch::no)}; },
        deadline, wait_.cancel);
    if (!seen) return seen.error();
    const Call& found = seen.value()[0];
    if (found->code == ZNONODE) continue;
    if (!found->ok()) return session_->refused(found, "look at " + path_of(node.name));
    if (found->stat.ephemeralOwner == session_->id() && own_.empty()) {
      own_ = node.name;
      fence_ = static_cast<std::uint64_t>(found->stat.czxid);
      continue;
    }
    if (auto ok = remove_node(node.name, deadline, wait_.cancel); !ok) return ok.error();
  }
  in_doubt_ = false;
  return !own_.empty();
}

// Makes our node.
Result<void> Acquisition::join() {
  const std::string prefix = path_of(node_prefix(place_->style, request_.claim(), uuid_));
  for (unsigned creates = 0; creates < kMostCreates; ++creates) {
    if (in_doubt_) {
      const auto found = find_own();
      if (!found) return found.error();
      if (found.value()) return {};
    }
    in_doubt_ = true;
    const Call made = create(session_->handle(), prefix, record_, NodeKind::ephemeral_sequential,
                             !place_->auth.empty());
    const Call listed = get_children(session_->handle(), lock_, Watch::no);
    if (auto ok = session_->wait({made, listed}, patience(), wait_.cancel); !ok) return ok;
    if (made->ok()) {
      in_doubt_ = false;
      own_ = made->text.substr(lock_.size() + 1);
      fence_ = static_cast<std::uint64_t>(made->stat.czxid);
      session_->clock().proved(made->sent, Clock::now());
      if (listed->ok()) children_ = listed->names;
      return {};
    }
    if (session_->expired()) return session_->silent();
    if (made->in_doubt() || made->code == ZSESSIONMOVED) continue;
    in_doubt_ = false;
    if (made->code != ZNONODE) return session_->refused(made, "create a node in " + lock_);
    if (auto ok = make_parents(*session_, *place_, lock_, patience(), wait_.cancel); !ok) return ok;
  }
  return vanishes();
}

Result<Decision> Acquisition::decide_now() {
  if (!children_) {
    const auto answers = session_->persist(
        [&] { return std::array{get_children(session_->handle(), lock_, Watch::no)}; }, patience(),
        wait_.cancel);
    if (!answers) return answers.error();
    const Call& listed = answers.value()[0];
    if (listed->code == ZNONODE) return Decision{};
    if (!listed->ok()) return session_->refused(listed, "list " + lock_);
    children_ = listed->names;
  }
  Decision decision = decide_by(*children_);
  if (decision.kind == Decision::Kind::refused) {
    return mode_conflict(request_.key, request_.claim(), decision.held);
  }
  if (decision.kind == Decision::Kind::watch_node ||
      decision.kind == Decision::Kind::watch_children) {
    if (auto ok = tell(*children_); !ok) return ok.error();
  }
  if (request_.mode == Mode::slots) {
    const auto queue = queue_of(*children_);
    followed_ = !queue.empty() && queue.back().name != own_;
  }
  children_.reset();
  return decision;
}

Result<void> Acquisition::tell(const std::vector<std::string>& children) {
  if (!wait_.on_blocked) return {};
  auto others = children;
  std::erase(others, own_);
  const auto queue = queue_of(others);
  const auto all = queue_of(children);
  const auto holding = static_cast<std::ptrdiff_t>(count_holders(all));
  const auto ours = std::find_if(all.begin(), all.end(),
                                 [&](const NodeName& node) { return node.name == own_; }) -
                    all.begin();
  std::string seen = std::to_string(ours - holding) + ' ';
  for (std::size_t i = 0; i < count_holders(queue); ++i) seen += queue[i].name + '/';
  if (seen == told_) return {};
  auto info = look_at(*session_, lock_, request_.key, others, false, patience(), wait_.cancel);
  if (!info) return info.error();
  if (info->holders.empty()) return {};
  told_ = seen;
  const auto count = static_cast<std::ptrdiff_t>(all.size());
  if (ours >= holding && ours < count) {
    info->place = static_cast<unsigned>(ours - holding) + 1;
    info->waiter_count = static_cast<unsigned>(count - holding);
  }
  wait_.on_blocked(info.value());
  return {};
}

// Sets the watch that `decision` asks for.  False if the queue has changed since the decision.
Result<bool> Acquisition::watch(const Decision& decision) {
  session_->take_news();
  Watch list = Watch::yes;
  // Not exists(), which would leave a watch behind on a node that is gone, and tells nothing of one
  // that we may not read (CVE-2024-23944).
  if (decision.kind == Decision::Kind::watch_node) {
    const std::string path = path_of(decision.node);
    const auto answers = session_->persist(
        [&] { return std::array{zookeeper::get(session_->handle(), path, Watch::yes)}; },
        patience(), wait_.cancel);
    if (!answers) return answers.error();
    const Call& answer = answers.value()[0];
    if (answer->code == ZNONODE) return false;
    if (!answer->ok() && answer->code != ZNOAUTH) return session_->refused(answer, "watch " + path);
    if (answer->ok()) {
      if (request_.mode != Mode::slots) return true;
      // The waiter before us may have acquired its slot, and written its record, before the watch
      // was set: the watch would never report it.
      list = Watch::no;
    }
  }
  const auto answers =
      session_->persist([&] { return std::array{get_children(session_->handle(), lock_, list)}; },
                        patience(), wait_.cancel);
  if (!answers) return answers.error();
  const Call& answer = answers.value()[0];
  if (answer->code == ZNONODE) return false;
  if (!answer->ok()) return session_->refused(answer, "watch " + lock_);
  const Decision now = decide_by(answer->names);
  return now.kind == decision.kind && now.node == decision.node;
}

// Until there is news.
Result<void> Acquisition::sleep() {
  while (!session_->take_news()) {
    if (time_is_up()) return busy();
    const Deadline due = session_->clock().next_sync();
    if (auto ok = session_->wait_for_news(std::min(wait_.until, due), wait_.cancel); !ok) return ok;
    if (!session_->connected()) return session_->silent();
    if (Clock::now() < due) continue;
    const Call synced = sync(session_->handle(), lock_);
    if (auto ok = hear(synced); !ok) return ok;
    session_->clock().synced(synced->sent, Clock::now());
  }
  return {};
}

// A server that is silent is not given up earlier than the library would do it.
Result<void> Acquisition::hear(const Call& call) {
  const Deadline silent_at = std::min(after(Clock::now(), session_->timeout()), wait_.until);
  if (auto ok = session_->wait({call}, std::max(patience(), silent_at), wait_.cancel); !ok) {
    return ok;
  }
  return call->ok() ? Result<void>() : session_->refused(call, "look at " + lock_);
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
    if (auto ok = session_->open(patience(), wait_.cancel); !ok) return ok;
  }
  const Call proven = zookeeper::prove(session_->handle(), path_of(own_));
  auto heard = hear(proven);
  if (proven->code == ZNONODE) return {};  // as the next list will tell
  if (!heard) return heard;
  session_->clock().proved(proven->sent, Clock::now());
  return {};
}

// A client that waits must not have a number, or a holder before it could wait for that.
Result<void> Acquisition::queue_anew() {
  (void)session_->end(patience());
  forget_session({Errc::lost, place_->shown + ": the node was deleted by somebody else"});
  return open_session();
}

std::unique_ptr<Lease> Acquisition::lease() {
  Grant grant{.request = request_,
              .path = path_of(own_),
              .slot = slot_.number(),
              .slot_path = slot_.path(),
              .fence = fence_,
              .announced = nullptr};
  if (waited_ || followed_) grant.announced = set(session_->handle(), grant.path, record_);
  return make_lease(place_, std::move(session_), std::move(grant));
}

Result<std::unique_ptr<Lease>> Acquisition::get() {
  if (auto ok = open_session(); !ok) return ok.error();
  unsigned proofs = 0;    // since it is our turn
  unsigned vanished = 0;  // how often our node was not in the list
  for (;;) {
    if (own_.empty()) {
      if (auto ok = join(); !ok) return ok.error();
    }
    if (slot_.in_doubt()) {
      if (auto ok = slot_.settle(*session_, patience(), wait_.cancel); !ok) return ok.error();
    }
    const auto decision = decide_now();
    if (!decision) return decision.error();
    using Kind = Decision::Kind;
    // A list without our own node is no answer: somebody has deleted the node, or the server does
    // not tell what there is.
    const bool is_gone = decision.value().kind == Kind::gone;
    if (is_gone && ++vanished > kMostCreates) return vanishes();
    if (!is_gone) patience_.answered();
    if (decision.value().kind == Kind::granted) {
      if (const unsigned slot = decision.value().slot; slot != 0) {
        const auto taken = slot_.take(*session_, slot, patience(), wait_.cancel);
        if (!taken) return taken.error();
        if (!taken.value()) continue;
      }
      if (!session_->clock().is_fresh(Clock::now())) {
        if (auto ok = prove(++proofs); !ok) return ok.error();
        // If that took long, our node may have been deleted meanwhile.
        if (proofs > 1 || !session_->clock().is_fresh(Clock::now())) continue;
      }
      patience_.recovered();
      return lease();
    }
    proofs = 0;
    if (is_gone && slot_.number() != 0) {
      if (auto ok = queue_anew(); !ok) return ok.error();
      continue;
    }
    if (is_gone) {
      own_.clear();
      in_doubt_ = true;
      continue;
    }
    if (patience_.tries_once() || time_is_up()) return busy();
    waited_ = true;
    const auto watched = watch(decision.value());
    if (!watched) return watched.error();
    if (!watched.value()) continue;
    patience_.recovered();
    useless_since_.reset();
    if (auto ok = sleep(); !ok) return ok.error();
  }
}

// Waits until the servers confirm that nothing of ours is left.  A create in doubt is not looked
// for: a server that delays its reply delays the answer to a question, too.  The end of the session
// needs no answer to be carried out behind the create.  False: nobody has confirmed it.
bool Acquisition::leave() {
  if (!session_ || !session_->handle()) return true;
  const Deadline deadline = after(Clock::now(), place_->patience);
  if (in_doubt_ || slot_.in_doubt()) return session_->end(deadline);
  if (slot_.number() != 0) {
    // Not one by one: a second request to delete the number could hit that of the next holder.
    if (!session_->open_until(deadline, Cancel())) return session_->expired();
    const auto gone = session_->persist(
        [&] { return std::array{remove_both(session_->handle(), path_of(own_), slot_.path())}; },
        deadline, Cancel());
    if (!gone || !gone.value()[0]->ok()) return session_->end(deadline);
    session_->close();
    return true;
  }
  bool left = own_.empty() ||
              (session_->open_until(deadline, Cancel()) && remove_node(own_, deadline, Cancel()));
  left = left || session_->expired();
  session_->close();
  return left;
}

Result<std::unique_ptr<Lease>> Acquisition::run() {
  for (;;) {
    auto lease = get();
    if (lease) return lease;
    Error why = lease.error();
    if (why.code == Errc::lost) {
      why.code = Errc::unreachable;
      forget_session(why);
    } else if (why.code == Errc::unreachable && useless_since_ &&
               Clock::now() > after(*useless_since_, session_->timeout())) {
      (void)leave();
      forget_session(why);
    }
    if (const auto again = patience_.pause(why); !again) {
      const bool left = leave();
      if (again.error().code == Errc::busy && !left) return session_->silent();
      return again.error();
    }
  }
}

}  // namespace

Result<std::unique_ptr<Lease>> acquire(const std::shared_ptr<const Place>& place,
                                       const Request& request, const Wait& wait) {
  return Acquisition(place, request, wait).run();
}

}  // namespace dlock::zookeeper
