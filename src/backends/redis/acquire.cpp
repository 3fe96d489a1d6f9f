// Waiting.  Who has to wait subscribes to a channel of its own and then joins the queue on the
//          server, in this order: a waiter that does not hear counts as dead.  Whoever frees the
//          lock calls the first in the queue that hears.  So a waiter sends nothing while it waits,
//          the dead are passed over, and a hand-over costs the same however many wait.
// Doubt.   A call can get lost with the waiter that had it.  So the one behind is told too, and
//          looks half a second later whether the lock was taken.  And since nobody calls when a
//          holder dies, all look when its lease would run out, one after another.
// Foreign  locks are not released by a script of ours: the server is asked to tell when the key
//          changes (client-side caching); where it cannot (Redis < 6), we look twice a second.
// Lost     answers.  The same id asks again, and the script knows that it is granted already.  Who
//          gives up with an answer outstanding undoes what may have been done.
#include "backends/redis/acquire.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "backends/redis/record.hpp"
#include "backends/redis/redis_lease.hpp"
#include "util/host.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

using util::quoted;

constexpr Millis kLookAtLeast{25'000};  // to stay in the queue: a waiter's record lasts 60 s
constexpr Millis kLookAtMost{15'000};   // by those with more than `kFront` others before them
constexpr int kFront = 3;  // these many can all die, and still somebody looks when a lease runs out
constexpr Millis kForeignLook{500};
constexpr Millis kStagger{4};  // between the looks of two waiters
constexpr Millis kMostStagger{800};
constexpr Millis kUndoPatience{1'000};
constexpr const char* kWaiterLives = "60000";

class Acquisition {
 public:
  Acquisition(std::shared_ptr<Node> node, const Request& request, const Wait& wait)
      : node_(std::move(node)), request_(request), wait_(wait), names_(node_->names(request.key)) {}

  Result<std::unique_ptr<Lease>> run();

 private:
  Result<std::unique_ptr<Lease>> get();
  template <class Try>
  std::invoke_result_t<Try, Deadline> persist(Try once);
  Result<Vote> attempt(Turn turn);
  Result<void> join();
  void plan(const Vote& vote);
  Result<Turn> wait_for_turn();
  bool read_calls(Turn& turn);
  bool look();
  bool look_as_deputy();
  bool look_at_slots();
  bool still_queued(const Reply& score, const Reply& record);
  void look_again_in(std::optional<Millis> time);

  bool tell();
  void tell(const LockInfo& info);
  void watch_foreign();
  bool is_watched() const { return watched_ != 0 && watched_ == node_->connection(); }
  void undo();

  std::string record() const;
  std::string entry() const {
    return mode_text(request_.mode, 0).substr(0, 1) + ':' + request_.owner.id;
  }
  Deadline patience() const { return after(Clock::now(), node_->address().patience); }
  bool time_is_up() const { return wait_.until <= Clock::now(); }
  Error busy() const { return {Errc::busy, quoted(request_.key) + " is busy"}; }
  Error cancelled() const {
    return {Errc::cancelled, "stopped waiting for " + quoted(request_.key)};
  }

  const std::shared_ptr<Node> node_;
  const Request& request_;
  const Wait& wait_;
  const Names names_;

  std::unique_ptr<Subscription> subscription_;
  std::string acquired_at_;
  std::string came_;  // since when we wait, by the server
  int place_ = 0;     // in the queue, when last heard of
  Deadline asked_;    // when the last attempt was sent
  Deadline look_at_ = kNever;
  bool deputy_ = false;    // somebody else was called: at look_at_ it must have come
  bool foreign_ = false;   // held by another program
  unsigned watched_ = 0;   // the connection of whose keys the server tells us; 0: of none
  bool joined_ = false;    // the queue has us, or may have
  bool in_doubt_ = false;  // an attempt may have been done without an answer
  std::string told_;       // the holders that on_blocked was last called with
};

std::string Acquisition::record() const {
  Record out;
  out.owner = request_.owner;
  out.mode = request_.mode;
  out.slots = request_.slots;
  out.acquired_at = acquired_at_;
  out.ttl = request_.ttl;
  return format_record(out);
}

// What fails once the server has answered may pass: it is being restarted, or the network hangs.
// A last try that is cut short says less than the one before.
template <class Try>
std::invoke_result_t<Try, Deadline> Acquisition::persist(Try once) {
  const Deadline give_up = patience();
  std::optional<Error> before;
  for (Millis pause{50};; pause = std::min(pause * 2, Millis{1'000})) {
    auto result = once(give_up);
    if (result) return result;
    const bool may_pass = result.error().code == Errc::unreachable && node_->ever_connected();
    if (may_pass && before && Clock::now() >= give_up) return *before;
    if (!may_pass || after(Clock::now(), pause) >= give_up) return result;
    before = result.error();
    if (util::wait_readable(wait_.cancel.fd(), after(Clock::now(), pause))) return cancelled();
  }
}

Result<Vote> Acquisition::attempt(Turn turn) {
  return persist([&](Deadline give_up) {
    acquired_at_ = util::utc_now();
    asked_ = Clock::now();
    auto vote = node_->try_acquire(request_, record(), turn, subscription_ != nullptr, came_,
                                   give_up, wait_.cancel);
    if (vote) {
      came_ = vote->came;
      place_ = vote->place;
    }
    in_doubt_ = !vote && node_->ever_connected();
    return vote;
  });
}

Result<void> Acquisition::join() {
  auto subscription = persist([&](Deadline give_up) {
    return Subscription::open(node_->address(), names_.channels + request_.owner.id, give_up,
                              wait_.cancel);
  });
  if (!subscription) return subscription.error();
  subscription_ = std::move(*subscription);
  joined_ = true;
  return {};
}

void Acquisition::tell(const LockInfo& info) {
  std::string ids;
  for (const LockInfo::Holder& holder : info.holders) ids += holder.owner.id + ' ';
  if (ids == told_ || ids.empty()) return;
  told_ = ids;
  if (wait_.on_blocked) wait_.on_blocked(info);
}

// False: by now nobody holds it.
bool Acquisition::tell() {
  const auto info = node_->look(request_.key, patience());
  if (!info) return true;
  const auto& holders = info.value().holders;
  foreign_ = std::any_of(holders.begin(), holders.end(),
                         [](const auto& holder) { return holder.foreign.has_value(); });
  tell(info.value());
  return !holders.empty();
}

// The server tells of keys that this one connection has read.
void Acquisition::watch_foreign() {
  const bool wanted =
      foreign_ && subscription_ && subscription_->redirect_id() != 0 && place_ <= kFront;
  const bool was_watched = is_watched();
  watched_ = 0;
  if (wanted) {
    const std::string id = std::to_string(subscription_->redirect_id());
    const auto replies = node_->ask({{"CLIENT", "TRACKING", "ON", "REDIRECT", id, "NOLOOP"}},
                                    patience(), wait_.cancel);
    if (replies && !replies.value()[0].is_error()) watched_ = node_->connection();
  } else if (was_watched) {
    (void)node_->ask({{"CLIENT", "TRACKING", "OFF"}}, patience(), wait_.cancel);
  }
}

void Acquisition::look_again_in(std::optional<Millis> time) {
  Millis pause = std::min(time.value_or(kLookAtLeast), kLookAtLeast) + Millis{2};
  if (place_ > kFront) {
    pause = std::max(pause, kLookAtMost);
  } else if (foreign_ && !is_watched()) {
    pause = std::min(pause, kForeignLook);
  }
  look_at_ = after(Clock::now(), pause + std::min(kStagger * std::max(place_, 0), kMostStagger));
}

void Acquisition::plan(const Vote& vote) {
  deputy_ = vote.kind == Vote::Kind::other_turn && place_ <= kFront;
  look_again_in(vote.look_in);
}

// True if the lock must be asked for now, with `turn`.
bool Acquisition::read_calls(Turn& turn) {
  const auto calls = subscription_->read(names_.lock);
  if (!calls) {
    subscription_.reset();
    turn = Turn::wait;
    return true;
  }
  for (const std::string& call : calls.value()) {
    constexpr std::string_view kLook = "look ";
    if (call == "go") {
      turn = Turn::called;
      return true;
    }
    if (call == "changed" && is_watched()) {
      turn = Turn::wait;
      return true;
    }
    if (!call.starts_with(kLook)) continue;
    const auto ms = util::parse_int(std::string_view(call).substr(kLook.size()), 0, 86'400'000);
    deputy_ = true;
    place_ = 0;
    look_at_ = std::min(look_at_, after(Clock::now(), Millis{ms.value_or(0)}));
  }
  return false;
}

// As deputy: one command, since this happens at each hand-over.  True if nobody of ours holds it.
bool Acquisition::look_as_deputy() {
  const auto replies = node_->ask({{"GET", names_.owner}}, patience(), wait_.cancel);
  if (!replies) return true;
  const auto record = parse_record(replies.value()[0].text);
  if (!record) return true;
  deputy_ = false;
  LockInfo info{.key = request_.key, .mode = record->mode, .slots = record->slots};
  info.holders.push_back({.owner = record->owner,
                          .acquired_at = record->acquired_at,
                          .held = record->held,
                          .fence = record->fence});
  tell(info);
  look_again_in(record->ttl);
  return false;
}

// Who was taken for dead must subscribe again: perhaps it does not hear.
bool Acquisition::still_queued(const Reply& score, const Reply& record) {
  const bool queued = score.kind == Reply::Kind::text;
  if (!queued) subscription_.reset();
  return queued && record.number() == 1;
}

bool Acquisition::look_at_slots() {
  const auto replies = node_->ask({{"ZRANGE", names_.lock, "0", "0", "WITHSCORES"},
                                   {"TIME"},
                                   {"ZSCORE", names_.queue, entry()},
                                   {"PEXPIRE", names_.waiter + request_.owner.id, kWaiterLives}},
                                  patience(), wait_.cancel);
  if (!replies) return true;
  const std::int64_t soonest = replies.value()[0].at(1).number(-1);
  const Reply& time = replies.value()[1];
  const std::int64_t now = time.at(0).number() * 1'000 + time.at(1).number() / 1'000;
  if (!still_queued(replies.value()[2], replies.value()[3]) || soonest <= now) return true;
  look_again_in(Millis{soonest - now});
  return false;
}

// True if it is worth to ask for the lock.
bool Acquisition::look() {
  if (request_.mode == Mode::slots) return look_at_slots();
  std::vector<Command> commands{{"PTTL", names_.lock},
                                {"GET", names_.owner},
                                {"ZSCORE", names_.queue, entry()},
                                {"PEXPIRE", names_.waiter + request_.owner.id, kWaiterLives}};
  const auto replies = node_->ask(commands, patience(), wait_.cancel);
  if (!replies) return true;
  const std::int64_t left = replies.value()[0].number(-2);
  if (!still_queued(replies.value()[2], replies.value()[3]) || left == -2) return true;
  const auto record = parse_record(replies.value()[1].text);
  if (record && told_ != record->owner.id + ' ' && !tell()) return true;
  look_again_in(left < 0 ? std::nullopt : std::optional(Millis{left}));
  return false;
}

Result<Turn> Acquisition::wait_for_turn() {
  for (;;) {
    std::array<pollfd, 3> fds{{{wait_.cancel.fd(), POLLIN, 0},
                               {subscription_->fd(), POLLIN, 0},
                               {is_watched() ? node_->fd() : -1, POLLIN, 0}}};
    util::poll(fds, std::min(look_at_, wait_.until));
    if (fds[0].revents != 0) return cancelled();
    Turn turn = Turn::wait;
    if (fds[1].revents != 0 && read_calls(turn)) return turn;
    if (time_is_up()) return busy();
    if (fds[2].revents != 0) return Turn::wait;  // the connection has ended, and the watch with it
    if (Clock::now() < look_at_) continue;
    if (deputy_) {
      if (look_as_deputy()) return Turn::late;
    } else if (foreign_ || look()) {
      return Turn::wait;
    }
    if (wait_.cancel.requested()) return cancelled();
  }
}

Result<std::unique_ptr<Lease>> Acquisition::get() {
  Turn turn = time_is_up() ? Turn::once : Turn::wait;
  for (;;) {
    watch_foreign();  // before the attempt: what that reads is watched from then on
    const auto vote = attempt(turn);
    if (!vote) return vote.error();
    if (vote.value().kind == Vote::Kind::granted) {
      foreign_ = false;
      watch_foreign();  // no more: that others join the queue is no news for a holder
      return make_lease(node_, {.request = request_,
                                .acquired_at = acquired_at_,
                                .fence = vote.value().fence,
                                .asked = asked_,
                                .subscription = std::move(subscription_)});
    }
    if (vote.value().kind == Vote::Kind::other_mode) {
      const ModeAndSlots held = parse_mode_text(vote.value().held_mode);
      return mode_conflict(request_, held.mode, held.slots);
    }
    const bool held = tell();
    if (time_is_up()) return busy();
    if (!subscription_) {
      if (auto ok = join(); !ok) return ok.error();
      turn = Turn::wait;
      continue;
    }
    if (!held && vote.value().kind == Vote::Kind::held) {
      turn = Turn::wait;  // freed just now, and by a program that calls nobody
      continue;
    }
    plan(vote.value());
    const auto next = wait_for_turn();
    if (!next) return next.error();
    turn = next.value();
  }
}

// The queue must not wait for us, and what was perhaps granted must not wait for its end.
void Acquisition::undo() {
  if (!joined_ && !in_doubt_) return;
  (void)node_->remove(request_, true,
                      after(Clock::now(), std::min(node_->address().patience, kUndoPatience)),
                      Cancel());
}

Result<std::unique_ptr<Lease>> Acquisition::run() {
  auto lease = get();
  if (!lease) undo();
  return lease;
}

}  // namespace

Result<std::unique_ptr<Lease>> acquire(const std::shared_ptr<Node>& node, const Request& request,
                                       const Wait& wait) {
  return Acquisition(node, request, wait).run();
}

}  // namespace dlock::redis
