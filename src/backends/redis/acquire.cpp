// Waiting.  Who has to wait subscribes to a channel of its own and then joins the queue on the
//          server, in this order: a waiter that does not hear counts as dead.  Whoever frees the
//          lock calls the first in the queue that hears.  So a waiter sends nothing while it waits,
//          the dead are passed over, and a hand-over costs the same however many wait.
// Doubt.   A call can get lost with the waiter that had it.  So the one behind is told too, and
//          looks half a second later whether the lock was taken.  And since nobody calls when a
//          holder dies, all look when its lease would run out, one after another.
//          A server that takes no subscription, as behind some proxies, is asked twice a second; so
//          is one where we may not PUBLISH, and others like us could not either.
// Foreign  locks are not released by a script of ours: the server is asked to tell when the key
//          changes (client-side caching); where it cannot (Redis < 6), we look twice a second.
// Several  servers.  All are asked at once.  Whoever is refused waits in the queue of one of them,
//          the head, where somebody else was granted the lock; when it is called it asks the head
//          first, and the others only when it has that.  So those that wait do not split the votes,
//          and those whose votes were split meet at the first server that answers.  What is there
//          may be stale, as after a release that has not come through.  So a waiter that looks at
//          the head looks at the others, too, and writes nothing there; far behind in the queue it
//          does so less often.
// Numbers  of slots.  On several servers a holder may be missing on one or another, so that none is
//          full although all numbers are taken.  Then there is no queue to wait in, and we ask
//          again up to every half second, until a holder has gone.
// Lost     answers.  Nobody knows whether a request that was not answered was carried out, or when
//          it will be.  So its id is used no more: it is taken back wherever that request may come
//          to, which also leaves a mark there by which what comes later gets nothing (release.lua).
//          So nothing that is under way, be it a request or an undo, ever names an id that is in
//          use.
#include "backends/redis/acquire.hpp"

#include <algorithm>

#include "backends/redis/acquisition.hpp"
#include "backends/redis/redis_lease.hpp"
#include "core/lease_time.hpp"
#include "util/host.hpp"
#include "util/jitter.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"
#include "util/random_id.hpp"

namespace dlock::redis {
namespace {

constexpr unsigned kMostDoublings = 5;  // of a pause of 2 ms
constexpr unsigned kMostNumberlessDoublings = 8;
constexpr unsigned kMostSplits = 12;  // then somebody has left something behind, and we wait for it

}  // namespace

std::string Acquisition::record() const {
  Record out;
  out.owner = request_.owner;
  out.mode = request_.mode;
  out.slots = request_.slots;
  out.acquired_at = acquired_at_;
  out.ttl = request_.ttl;
  return format_record(out);
}

Result<RoundResult> Acquisition::attempt(Turn turn) {
  const Deadline give_up = patience_.call_until();
  acquired_at_ = util::utc_now();
  Traces traces;
  const Question question{.request = request_,
                          .record = record(),
                          .head = head_,
                          .head_alone = head_first_,
                          .meets = splits_ < kMostSplits,
                          .how = {.turn = turn, .join = subscription_ != nullptr, .came = came_},
                          .traces = traces};
  if (auto ok = undo_leftovers(give_up); !ok) return ok.error();
  auto result = ask_for_lock(*cluster_, question, give_up, wait_.cancel);
  if (traces.id_is_spent) take_another_id(traces);
  if (!result) {
    head_first_ = false;  // perhaps it is the head that is down
    return result;
  }
  patience_.answered();
  if (result->kind == RoundResult::Kind::refused && result->head == head_) {
    came_ = result->vote.came;
    place_ = result->vote.place;
  }
  return result;
}

Result<void> Acquisition::join() {
  auto subscription =
      Subscription::open(cluster_->address(head_), names_.channels + request_.owner.id,
                         patience_with_head(), wait_.cancel);
  if (!subscription) return subscription.error();
  subscription_ = std::move(*subscription);
  joined_ = true;
  if (nobody_calls()) tell_of_asking(*subscription_->nobody_calls());
  return {};
}

void Acquisition::tell_of_asking(const Error& why) {
  if (std::exchange(has_told_of_asking_, true)) return;
  util::log(util::Level::note, "waiting for " + util::in_quotes(request_.key) +
                                   " by asking again twice a second: " + why.message);
}

// Where no server calls us, as behind a proxy that passes no SUBSCRIBE, a waiter asks again and
// again.  A connection that is lost may be good the next time.
Result<void> Acquisition::join_somewhere() {
  if (!is_deaf_) {
    auto ok = join();
    if (ok || ok.error().code == Errc::cancelled) return ok;
    const unsigned size = cluster_->size();
    if (++moves_ < size) {
      head_first_ = false;
      move_to((head_ + 1) % size);
      return {};
    }
    const Errc code = ok.error().code;
    if (code != Errc::unreachable && code != Errc::unsupported) return ok;
    is_deaf_ = code == Errc::unsupported;
    if (is_deaf_ || moves_ > size) tell_of_asking(ok.error());
  }
  patience_.recovered();
  const Deadline next = after(Clock::now(), util::jitter(kAskAgain / 2, kAskAgain));
  if (util::wait_readable(wait_.cancel.fd(), std::min(next, wait_.until))) return cancelled();
  return {};
}

// To the queue of another server, out of that of the old one: where nobody waits any more, nobody
// would clear up.
void Acquisition::move_to(unsigned head) {
  if (head == head_) return;
  if (joined_) take_another_id({});
  head_ = head;
  subscription_.reset();
  watched_ = 0;
  came_.clear();
  place_ = 0;
}

// In the queue, too: `came_` keeps our place.
void Acquisition::take_another_id(const Traces& traces) {
  auto nodes = traces.in_doubt;
  if (joined_ && std::find(nodes.begin(), nodes.end(), head_) == nodes.end()) {
    nodes.push_back(head_);
  }
  for (const unsigned node : nodes) leftovers_.add(request_, node, traces.outstanding);
  subscription_.reset();
  joined_ = false;
  request_.owner.id = util::random_id();
}

// Before we ask again, or they could be in our own way.  Of several servers nobody waits for the
// answer: a minority of them does no harm.
Result<void> Acquisition::undo_leftovers(Deadline give_up) {
  if (single()) return leftovers_.undo(*cluster_, give_up, wait_.cancel);
  leftovers_.ask_to_undo(*cluster_);
  return {};
}

void Acquisition::warn_of_other_list() {
  if (has_warned_) return;
  has_warned_ = true;
  util::log(util::Level::warning,
            util::in_quotes(request_.key) +
                " is held by a client with another list of servers, or with other names for them: "
                "clients exclude each other only if all have the same list");
}

// For a while that is longer each time, and by chance, so that the others do not ask again at the
// same moment.  True if that ends the wait.
bool Acquisition::pause_after_split(unsigned& times, unsigned most_doublings) {
  const auto range = 2 * (1U << std::min(times++, most_doublings));
  const Millis pause = util::jitter(Millis{range});
  return util::wait_readable(wait_.cancel.fd(), std::min(after(Clock::now(), pause), wait_.until));
}

Result<void> Acquisition::go_round_again(const RoundResult& round) {
  move_to(round.head);
  head_first_ = true;
  const bool once = patience_.tries_once();
  bool cancels = false;
  if (round.lacks_number) {
    splits_ = 0;
    // Not each time: the holders there change with each that tries as we do.
    if (numberless_ == kMostSplits) (void)tell();
    if (numberless_ >= kMostSplits && once) return busy();
    cancels = pause_after_split(numberless_, kMostNumberlessDoublings);
  } else if (splits_ >= kMostSplits) {
    return Error{Errc::unreachable, cluster_->address(round.head).shown +
                                        " and others grant the lock, but too slowly for this TTL"};
  } else {
    cancels = pause_after_split(splits_, kMostDoublings);
  }
  if (cancels) return cancelled();
  if (!once && time_is_up()) return busy();
  return {};
}

Result<std::unique_ptr<Lease>> Acquisition::get() {
  Turn turn = patience_.tries_once() ? Turn::once : Turn::wait;
  moves_ = 0;
  for (;;) {
    watch_foreign();  // before the attempt: what that reads is watched from then on
    const auto result = attempt(turn);
    if (!result) return result.error();
    const RoundResult& round = result.value();
    if (round.kind == RoundResult::Kind::held) {
      // The server of our queue is silent: who does not hear counts as dead there.  Nothing is sent
      // that names this id.
      patience_.recovered();
      const bool is_queued = joined_ && round.vote.kind != Vote::Kind::granted;
      if (is_queued) subscription_.reset();
      foreign_ = false;
      watch_foreign();  // no more: that others join the queue is no news for a holder
      return make_lease(cluster_, {.request = request_,
                                   .acquired_at = acquired_at_,
                                   .agreed = round.agreed,
                                   .asked = round.asked,
                                   .valid_until = trusted_until(round.asked, request_.ttl),
                                   .head = head_,
                                   .is_queued = is_queued,
                                   .outstanding = round.outstanding,
                                   .leftovers = std::move(leftovers_),
                                   .subscription = std::move(subscription_)});
    }
    if (round.other_list) warn_of_other_list();
    if (round.kind == RoundResult::Kind::split) {
      if (auto ok = go_round_again(round); !ok) return ok.error();
      continue;
    }
    const Vote& vote = round.vote;
    if (vote.kind == Vote::Kind::other_mode) {
      return mode_conflict(request_.key, request_.claim(), parse_mode_text(vote.held_mode));
    }
    splits_ = 0;
    numberless_ = 0;
    move_to(round.head);
    head_first_ = cluster_->size() > 1;
    const bool held = tell();
    if (time_is_up()) return busy();
    if (!subscription_) {
      turn = Turn::wait;
      if (auto ok = join_somewhere(); !ok) return ok.error();
      continue;
    }
    moves_ = 0;
    if (!held && vote.kind == Vote::Kind::held) {
      turn = Turn::wait;  // freed just now, and by a program that calls nobody
      continue;
    }
    plan(vote);
    const auto next = wait_for_turn();
    if (!next) return next.error();
    turn = next.value();
  }
}

// The queue must not wait for us, and what was perhaps granted must not wait for its end.
Result<void> Acquisition::undo() {
  if (joined_) leftovers_.add(request_, head_, nullptr);
  const Deadline deadline =
      after(Clock::now(), std::min(cluster_->address(head_).patience, kFarewell));
  return leftovers_.undo(*cluster_, deadline, Cancel());
}

Result<std::unique_ptr<Lease>> Acquisition::run() {
  for (unsigned tries = 1;; ++tries) {
    auto lease = get();
    if (lease) return lease;
    // If only the reply was lost, a second try need not wait for the service to come back.
    const bool in_time = Clock::now() < patience_.call_until();
    if (patience_.tries_once() && tries == 1 && in_time && !leftovers_.empty()) continue;
    if (const auto again = patience_.pause(lease.error()); !again) {
      const auto left = undo();
      return again.error().code == Errc::busy && !left ? left.error() : again.error();
    }
    subscription_.reset();  // it may be dead although nobody has told; came_ keeps our place
  }
}

Result<std::unique_ptr<Lease>> acquire(const std::shared_ptr<Cluster>& cluster,
                                       const Request& request, const Wait& wait) {
  return Acquisition(cluster, request, wait).run();
}

}  // namespace dlock::redis
