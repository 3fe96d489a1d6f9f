// What a waiter does until it is its turn: it sleeps, hears whether it is called, and looks for
// itself where nobody would call.
#include <poll.h>

#include <algorithm>
#include <array>

#include "backends/redis/acquisition.hpp"
#include "util/poll.hpp"

namespace dlock::redis {
namespace {

// To stay in the queue, where a waiter's record lasts for 20 s; and so that a lock that was freed
// is not lost on the living, however many of those that were to be called before them are not.
constexpr Millis kLookAtLeast{7'000};
constexpr int kFront = 3;  // these many can all die, and still somebody looks when a lease runs out
constexpr Millis kForeignLook{500};
constexpr Millis kDeputyLooks{500};
constexpr Millis kStagger{4};  // between the looks of two waiters
constexpr Millis kMostStagger{800};
constexpr const char* kWaiterLives = "20000";

}  // namespace

Result<std::vector<Reply>> Acquisition::ask(std::vector<Command> commands) {
  return cluster_->call<std::vector<Reply>>(
      head_,
      [commands = std::move(commands), deadline = patience_with_head()](Node& node, Cancel cancel) {
        return node.ask(commands, deadline, cancel);
      },
      wait_.cancel);
}

// What could not be taken back elsewhere may be by now.  Nothing is written to the queue: the
// holder would hear of it.
Result<std::vector<Reply>> Acquisition::ask_and_stay(std::vector<Command> commands) {
  commands.push_back({"PEXPIRE", names_.waiter + request_.owner.id, kWaiterLives});
  if (!single()) leftovers_.ask_to_undo(*cluster_);
  return ask(std::move(commands));
}

void Acquisition::tell(const LockInfo& info) {
  std::string ids;
  for (const LockInfo::Holder& holder : info.holders) ids += holder.owner.id + ' ';
  holders_ = ids;
  all_fenced_ = std::all_of(info.holders.begin(), info.holders.end(),
                            [](const auto& holder) { return holder.fence.has_value(); });
  if (ids == told_ || ids.empty()) return;
  told_ = ids;
  if (wait_.on_blocked) wait_.on_blocked(info);
}

// False: by now nobody holds it.
bool Acquisition::tell() {
  const auto info = cluster_->call<LockInfo>(
      head_,
      [key = request_.key, deadline = patience_with_head()](Node& node, Cancel cancel) {
        return node.glance(key, deadline, cancel);
      },
      wait_.cancel);
  if (!info) return true;
  const auto& holders = info.value().holders;
  foreign_ = std::any_of(holders.begin(), holders.end(),
                         [](const auto& holder) { return holder.foreign.has_value(); });
  tell(info.value());
  return !holders.empty();
}

// Nothing tells that those who have the head have more than that.
bool Acquisition::may_be_leftover() const {
  return !single() && !holders_.empty() && !all_fenced_ && holders_ != kept_out_by_;
}

// False: it is worth to ask for the lock, and if something is left behind at the head, all servers.
bool Acquisition::is_still_held() {
  const std::string before = holders_;
  (void)ask_and_stay({});
  if (!tell()) return false;
  if (holders_ != before || !may_be_leftover()) return true;
  head_first_ = false;
  return false;
}

// The server tells of keys that this one connection has read.
void Acquisition::watch_foreign() {
  const bool wanted =
      foreign_ && subscription_ && subscription_->redirect_id() != 0 && place_ <= kFront;
  const bool was_watched = is_watched();
  watched_ = 0;
  if (wanted) {
    const std::string id = std::to_string(subscription_->redirect_id());
    const auto replies = ask({{"CLIENT", "TRACKING", "ON", "REDIRECT", id, "NOLOOP"}});
    if (replies && !replies.value()[0].is_error()) watched_ = cluster_->node(head_).connection();
  } else if (was_watched) {
    (void)ask({{"CLIENT", "TRACKING", "OFF"}});
  }
}

void Acquisition::look_again_in(std::optional<Millis> time) {
  Millis pause = std::min(time.value_or(kLookAtLeast), kLookAtLeast) + Millis{2};
  if (place_ > kFront && !deputy_) {
    pause = kLookAtLeast;
  } else if ((foreign_ && !is_watched()) || may_be_leftover()) {
    pause = std::min(pause, kForeignLook);
  }
  look_at_ = after(Clock::now(), pause + std::min(kStagger * std::max(place_, 0), kMostStagger));
}

void Acquisition::plan(const Vote& vote) {
  deputy_ = vote.kind == Vote::Kind::other_turn;
  was_told_ = false;
  last_grant_.reset();
  look_again_in(vote.look_in);
}

// True if the lock must be asked for now, with `turn`.
Result<bool> Acquisition::read_calls(Turn& turn) {
  const auto calls = subscription_->read(names_.lock);
  if (!calls) {
    subscription_.reset();
    return calls.error();
  }
  for (const std::string& call : calls.value()) {
    constexpr std::string_view kLookIn = "look ";
    constexpr std::string_view kEndsIn = "ends ";
    if (call == "go") {
      turn = Turn::called;
      return true;
    }
    if (call == "changed" && is_watched()) {
      turn = Turn::wait;
      return true;
    }
    const bool ends = call.starts_with(kEndsIn);
    if (!ends && !call.starts_with(kLookIn)) continue;
    const auto ms = util::parse_int(std::string_view(call).substr(kLookIn.size()), 0, 86'400'000);
    const Deadline before = look_at_;
    if (ends) {
      look_again_in(Millis{ms.value_or(0)});
    } else {
      deputy_ = was_told_ = true;
      place_ = 0;
      look_at_ = after(Clock::now(), Millis{ms.value_or(0)});
    }
    look_at_ = std::min(look_at_, before);
  }
  return false;
}

// As deputy: one command, since this happens at each hand-over.  True if nobody of ours holds it.
// A waiter that was not told to look may have looked between two holders, and may do so again: the
// lock must be free at two looks, and not granted between them.
bool Acquisition::look_as_deputy() {
  std::vector<Command> commands{{"GET", names_.owner}};
  if (!was_told_) commands.push_back({"GET", names_.counter});
  const auto replies = was_told_ ? ask(std::move(commands)) : ask_and_stay(std::move(commands));
  if (!replies) return true;
  const auto record = parse_record(replies.value()[0].text);
  if (!record) {
    if (was_told_) return true;
    const std::string& grant = replies.value()[1].text;
    if (last_grant_ == grant) return true;
    last_grant_ = grant;
    look_at_ = after(Clock::now(), kDeputyLooks);
    return false;
  }
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

// While others hold it who share it; some may have died who were called, or who stood in front of
// us.
bool Acquisition::look_for_room() {
  auto room = cluster_->call<Room>(
      head_,
      [request = request_, deadline = patience_with_head()](Node& node, Cancel cancel) {
        return node.room(request, deadline, cancel);
      },
      wait_.cancel);
  if (!room || room->is_there) return true;
  look_again_in(room->look_in);
  return false;
}

// True if it is worth to ask for the lock.
bool Acquisition::look() {
  const auto replies = ask_and_stay(
      {{"PTTL", names_.lock}, {"GET", names_.owner}, {"ZSCORE", names_.queue, entry()}});
  if (!replies) return true;
  const std::int64_t left = replies.value()[0].number(-2);
  if (!still_queued(replies.value()[2], replies.value()[3]) || left == -2) return true;
  const auto record = parse_record(replies.value()[1].text);
  if (!record && request_.mode != Mode::exclusive) return look_for_room();
  if (!single() && record && Millis{left} > record->ttl + Millis{1'000}) {
    head_first_ = false;  // its clock was set back: the others may have forgotten it
    return true;
  }
  if (record && told_ != record->owner.id + ' ' && !tell()) return true;
  look_again_in(left < 0 ? std::nullopt : std::optional(Millis{left}));
  return false;
}

Result<Turn> Acquisition::wait_for_turn() {
  patience_.recovered();
  for (;;) {
    std::array<pollfd, 3> fds{{{wait_.cancel.fd(), POLLIN, 0},
                               {subscription_->fd(), POLLIN, 0},
                               {is_watched() ? cluster_->node(head_).fd() : -1, POLLIN, 0}}};
    util::poll(fds, std::min(look_at_, wait_.until));
    if (fds[0].revents != 0) return cancelled();
    Turn turn = Turn::wait;
    if (fds[1].revents != 0) {
      const auto called = read_calls(turn);
      if (!called) return called.error();
      if (called.value()) return turn;
    }
    if (time_is_up()) return busy();
    if (fds[2].revents != 0) {
      watched_ = 0;
      return Error{Errc::unreachable, cluster_->address(head_).shown + ": the connection was lost"};
    }
    if (Clock::now() < look_at_) continue;
    if (deputy_) {
      if (look_as_deputy()) return Turn::late;
    } else if (may_be_leftover()) {
      if (!is_still_held()) return Turn::wait;
      look_again_in(std::nullopt);
    } else if (foreign_ || look()) {
      return Turn::wait;
    }
    if (wait_.cancel.requested()) return cancelled();
  }
}

}  // namespace dlock::redis
