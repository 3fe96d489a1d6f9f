// What a waiter does until it is its turn: it sleeps, hears whether it is called, and looks for
// itself where nobody would call.
#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "backends/redis/acquisition.hpp"
#include "backends/redis/quorum.hpp"
#include "util/poll.hpp"

namespace dlock::redis {
namespace {

// To stay in the queue, where a waiter's record lasts for 20 s; and so that a lock that was freed
// is not lost on the living, however many of those that were to be called before them are not.
constexpr Millis kLookAtLeast{7'000};
constexpr Millis kFirstLook{1'000};  // of several servers
constexpr int kFront = 3;  // these many can all die, and still somebody looks when a lease runs out
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

void Acquisition::tell(LockInfo info) {
  std::optional<std::string> id;
  if (!info.holders.empty()) id = info.holders.front().owner.id;
  if (single() && subscription_ && place_ >= 0) info.place = static_cast<unsigned>(place_) + 1;
  const bool is_known = seen_ == id && seen_place_ == info.place;
  seen_ = id;
  seen_place_ = info.place;
  if (!is_known && id && wait_.on_blocked) wait_.on_blocked(info);
}

// False: by now nobody holds it.
bool Acquisition::tell() {
  auto info = cluster_->call<LockInfo>(
      head_,
      [key = request_.key, seen = seen_.value_or(""), deadline = patience_with_head()](
          Node& node, Cancel cancel) { return node.glance(key, seen, deadline, cancel); },
      wait_.cancel);
  if (!info) return true;
  const auto& holders = info.value().holders;
  foreign_ = !holders.empty() && holders.front().foreign.has_value();
  tell(*info);
  return !holders.empty();
}

// Of several servers: what freed the lock may not have come through to the head.  Those far behind
// look less often.  If it is free elsewhere, all are to be asked for it.
bool Acquisition::look_elsewhere() {
  if (single() || ++looks_ % (place_ / (kFront + 1) + 1) != 0) return false;
  std::vector<unsigned> nodes = cluster_->all();
  std::erase_if(nodes, [this](unsigned node) { return cluster_->is_behind(node); });
  std::size_t open = nodes.size();
  std::size_t free = 0;
  const std::size_t needed = quorum(cluster_->size());
  const Deadline until = after(Clock::now(), node_timeout(request_.ttl));
  cluster_->gather<bool>(
      nodes,
      [request = request_, seen = seen_, until](Node& node, unsigned, Cancel stop) -> Result<bool> {
        const auto info = node.glance(request.key, seen.value_or(""), until, stop);
        if (!info) return info.error();
        const auto& holders = info.value().holders;
        if (holders.empty()) return true;
        const bool is_shared = !holders.front().foreign && info.value().mode == request.mode &&
                               request.mode != Mode::exclusive;
        if (!is_shared) return holders.front().owner.id != seen;
        if (request.mode == Mode::shared) return false;  // what we wait for is in front of us
        const auto room = node.room(request, until, stop);
        return room ? Result<bool>(room.value().is_there) : room.error();
      },
      [&](unsigned, const Result<bool>& answer) {
        --open;
        if (answer && answer.value()) ++free;
        return free >= needed || free + open < needed;
      },
      [&] { return until; }, wait_.cancel);
  if (free < needed) return false;
  head_first_ = false;
  return true;
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
  } else if (nobody_calls() || (foreign_ && !is_watched())) {
    pause = std::min(pause, kAskAgain);
  } else if (!single() && looks_ == 0) {
    pause = std::min(pause, kFirstLook);
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
  tell(std::move(info));
  look_again_in(record->ttl);
  return false;
}

// Who was taken for dead must subscribe again: perhaps it does not hear.
bool Acquisition::still_queued(const Reply& rank, const Reply& record) {
  const bool queued = rank.kind == Reply::Kind::integer;
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
      {{"PTTL", names_.lock}, {"GET", names_.owner}, {"ZRANK", names_.queue, entry()}});
  if (!replies) return true;
  const std::int64_t left = replies.value()[0].number(-2);
  if (!still_queued(replies.value()[2], replies.value()[3]) || left == -2) return true;
  const int before = std::exchange(place_, static_cast<int>(replies.value()[2].number()));
  const auto record = parse_record(replies.value()[1].text);
  if (!record && request_.mode != Mode::exclusive) {
    if (look_for_room()) return true;
  } else {
    const bool may_be_another = record ? seen_ != record->owner.id : !single();
    const bool has_moved = single() && place_ != before;
    if ((may_be_another || has_moved) && !tell()) return true;
    look_again_in(left < 0 ? std::nullopt : std::optional(Millis{left}));
  }
  return look_elsewhere();
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
    } else if (foreign_) {
      (void)look_elsewhere();
      return Turn::wait;
    } else if (look()) {
      return Turn::wait;
    }
    if (wait_.cancel.requested()) return cancelled();
  }
}

}  // namespace dlock::redis
