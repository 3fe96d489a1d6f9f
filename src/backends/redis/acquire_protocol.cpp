#include "backends/redis/acquire_protocol.hpp"

#include <algorithm>

#include "backends/redis/quorum.hpp"
#include "core/lease_time.hpp"

namespace dlock::redis {
namespace {

constexpr Millis kHeadStartAtLeast{50};  // of the queue server, before another one is asked
constexpr Millis kAskedLast{3'000};      // since it is known that a server does not answer
constexpr Millis kPollInterval{500};     // of a waiter that no message wakes
constexpr Millis kMostJitter{50};        // of a sleep
constexpr Millis kLongestRest{3'000};    // after a round that has failed
constexpr unsigned kMostRestDoublings = 6;
constexpr unsigned kQuietSplits = 1;  // after more than that the lock is offered to the next

}  // namespace

AcquireProtocol::AcquireProtocol(Options options)
    : options_(std::move(options)),
      random_(static_cast<std::minstd_rand::result_type>(options_.seed % 2'147'483'646 + 1)),
      was_asked_(options_.order.size()),
      asked_last_until_(options_.order.size()),
      answer_took_(options_.order.size()),
      votes_(servers(), quorum(servers())),
      taken_(options_.order.size()),
      queue_server_(options_.order.front()) {}

Millis AcquireProtocol::chance(Millis from, Millis to) {
  return Millis{std::uniform_int_distribution<Millis::rep>(from.count(), to.count())(random_)};
}

// ---------------------------------------------------------------------------------------- asking

void AcquireProtocol::ask(Deadline now) { begin_to_ask(now, false, std::nullopt); }

void AcquireProtocol::begin_to_ask(Deadline now, bool by_timer, std::optional<unsigned> first) {
  state_ = State::asking;
  asked_at_ = now;
  asked_by_timer_ = by_timer;
  questions_.clear();
  grantor_.reset();
  is_front_round_ = false;
  other_mode_.clear();
  message_at_ = kNever;
  answer_until_ = single() ? kNever : after(now, options_.round_within);
  ask_next(now, first);
}

// False: all were asked.
bool AcquireProtocol::ask_next(Deadline now, std::optional<unsigned> first) {
  std::optional<unsigned> best = first;
  if (!best) {
    for (const unsigned server : options_.order) {
      if (std::ranges::count(questions_, server, &Question::server) > 0) continue;
      const auto available_at = [&](unsigned its) { return std::max(asked_last_until_[its], now); };
      if (!best || available_at(server) < available_at(*best)) best = server;
    }
  }
  ask_next_at_ = kNever;
  if (!best) return false;
  questions_.push_back({.server = *best, .round = ++round_, .asked_at = now});
  was_asked_[*best] = true;
  // A server that is far away is not asked together with another one each time.
  const Millis head_start = std::clamp(2 * answer_took_[*best], kHeadStartAtLeast,
                                       std::max(kHeadStartAtLeast, options_.round_within / 2));
  if (!single()) ask_next_at_ = after(now, head_start);
  orders_.push_back({.kind = Order::Kind::ask, .server = *best, .round = round_, .join = joins_});
  return true;
}

bool AcquireProtocol::asked(const Order& order) const {
  return std::ranges::count(questions_, order.round, &Question::round) > 0;
}

bool AcquireProtocol::awaits(const Order& order) const {
  if (order.kind == Order::Kind::ask) return state_ == State::asking && asked(order);
  return order.kind == Order::Kind::vote && state_ == State::voting && order.round == round_ &&
         order.token == token_;
}

// The request has come after it was undone.  What is granted in a later round stays.
void AcquireProtocol::undo_late(const Order& order) {
  const bool is_undone =
      order.round < round_ || state_ == State::sleeping || state_ == State::resting;
  if (!is_undone) return;
  orders_.push_back({.kind = Order::Kind::undo, .server = order.server, .round = order.round});
}

void AcquireProtocol::answered(const Order& order, const AskAnswer& answer, Deadline now) {
  using Kind = AskAnswer::Kind;
  const auto question = std::ranges::find(questions_, order.round, &Question::round);
  if (question != questions_.end()) {
    answer_took_[order.server] = std::chrono::duration_cast<Millis>(now - question->asked_at);
  }
  const bool is_granted = answer.kind == Kind::granted;
  // A queue server may answer when another one has refused already.
  const bool is_awaited =
      awaits(order) || (state_ == State::sleeping && is_granted && asked(order));
  if (!is_awaited) {
    if (is_granted) undo_late(order);
    return;
  }
  switch (answer.kind) {
    case Kind::granted:
      return granted_by(order, answer, now);
    case Kind::held:
      return refused_by(order.server, answer, now);
    case Kind::other_mode:
      floor_ = std::max(floor_, answer.token);
      other_mode_ = answer.mode;
      if (!single()) return begin_front_round(now);
      state_ = State::conflict;
      return;
    case Kind::duplicate:
      duplicate_ = {order.server, answer.duplicate};
      state_ = State::duplicate;
      return;
    case Kind::given_up:
      state_ = State::given_up;
      return;
    case Kind::late:
      return failed(order, now);
  }
}

// If other servers have been asked, too, all vote in a new round: what a server has granted in the
// round of a question is then no vote, since it may be with another number.
void AcquireProtocol::granted_by(const Order& order, const AskAnswer& answer, Deadline now) {
  queue_server_ = order.server;
  token_ = answer.token;
  number_ = answer.number;
  taken_.assign(taken_.size(), "");
  taken_[order.server] = answer.taken;
  if (single()) {
    if (now >= trusted_until(asked_at_, options_.ttl)) return round_failed(now);
    state_ = State::granted;
    return;
  }
  if (questions_.size() == 1) {
    grantor_ = order.server;
  } else {
    ++round_;
  }
  begin_votes(now);
}

void AcquireProtocol::refused_by(unsigned server, const AskAnswer& answer, Deadline now) {
  queue_server_ = server;
  splits_ = 0;
  refusal_ = answer;
  floor_ = std::max(floor_, answer.token);
  if (options_.waits && !joins_) {
    joins_ = true;
    state_ = State::sleeping;
    wake_at_ = now;
    wakes_by_timer_ = false;
    return;
  }
  if (joins_ && asked_by_timer_ && answer.place == 0 && !single()) return begin_front_round(now);
  sleep(now);
}

void AcquireProtocol::sleep(Deadline now) {
  const Millis pause = polls_ ? std::min(refusal_.ask_in, kPollInterval) : refusal_.ask_in;
  state_ = State::sleeping;
  wake_at_ = std::min(after(now, pause), message_at_);
  wakes_by_timer_ = true;
  constexpr Millis kShort{10};  // such a sleep awaits the end of the lock
  if (wake_at_ > after(now, kShort)) wake_at_ += chance(Millis{0}, kMostJitter);
}

// That a vote is not answered does not make a server the last to be asked: all vote at once.
void AcquireProtocol::failed(const Order& order, Deadline now) {
  if (order.kind == Order::Kind::ask) return question_failed(order, now);
  if (!awaits(order)) return;
  votes_.put(order.server, Vote::silent);
  judge(now);
}

void AcquireProtocol::question_failed(const Order& order, Deadline now) {
  asked_last_until_[order.server] = after(now, kAskedLast);
  const auto question = std::ranges::find(questions_, order.round, &Question::round);
  if (state_ != State::asking || question == questions_.end()) return;
  question->failed = true;
  const bool is_answer_open = std::ranges::count(questions_, false, &Question::failed) > 0;
  if (!is_answer_open && !ask_next(now, std::nullopt)) no_answer(now);
}

// What was asked may still arrive: another queue server may be asked next.
void AcquireProtocol::no_answer(Deadline now) {
  for (const Question& question : questions_) {
    asked_last_until_[question.server] = after(now, kAskedLast);
  }
  if (!single()) undo();
  rest(now, Millis{0}, kMostJitter);
  wakes_by_timer_ = asked_by_timer_;
}

// ---------------------------------------------------------------------------------------- voting

bool AcquireProtocol::start_last_round(Deadline now) {
  if (single() || state_ != State::sleeping || had_last_round_) return false;
  if (joins_ ? refusal_.place > 0 : refusal_.waiting > 0) return false;
  had_last_round_ = true;
  begin_front_round(now);
  return true;
}

void AcquireProtocol::begin_front_round(Deadline now) {
  is_front_round_ = true;
  grantor_.reset();
  ++round_;
  asked_at_ = now;
  token_ = floor_ + 1;
  number_ = options_.slots > 0 ? 1 : 0;
  taken_.assign(taken_.size(), "");
  begin_votes(now);
}

void AcquireProtocol::begin_votes(Deadline now) {
  state_ = State::voting;
  highest_ = 0;
  conflicts_ = 0;
  repeats_ = 0;
  votes_ = Votes(servers(), quorum(servers()));
  if (grantor_) votes_.put(*grantor_, Vote::yes);
  ask_for_votes(now);
}

// Those that have not answered.
void AcquireProtocol::ask_for_votes(Deadline now) {
  answer_until_ = after(now, options_.round_within);
  for (const unsigned server : options_.order) {
    if (votes_.at(server) != Vote::open) continue;
    was_asked_[server] = true;
    orders_.push_back({.kind = Order::Kind::vote,
                       .server = server,
                       .round = round_,
                       .token = token_,
                       .number = number_});
  }
}

void AcquireProtocol::answered(const Order& order, const VoteAnswer& answer, Deadline now) {
  using Kind = VoteAnswer::Kind;
  if (!awaits(order)) {
    if (answer.kind == Kind::yes || answer.kind == Kind::overtaken) undo_late(order);
    return;
  }
  switch (answer.kind) {
    case Kind::yes:
      votes_.put(order.server, Vote::yes);
      break;
    case Kind::overtaken:
      votes_.put(order.server, Vote::overtaken);
      highest_ = std::max(highest_, answer.token);
      break;
    case Kind::taken:
      votes_.put(order.server, Vote::taken);
      highest_ = std::max(highest_, answer.token);
      taken_[order.server] = answer.taken;
      break;
    case Kind::duplicate:
      duplicate_ = {order.server, answer.duplicate};
      state_ = State::duplicate;
      return;
    case Kind::held: {
      const bool is_ours = !answer.record.empty();
      const bool has_numbers = answer.mode.starts_with('n') || options_.slots > 0;
      if (is_ours && has_numbers && answer.mode == other_mode_) ++conflicts_;
      votes_.put(order.server, Vote::no);
      break;
    }
    case Kind::given_up:
      is_given_up_ = true;
      votes_.put(order.server, Vote::no);
      break;
    case Kind::late:
    case Kind::kept:
      votes_.put(order.server, Vote::no);
      break;
  }
  judge(now);
}

void AcquireProtocol::judge(Deadline now) {
  const bool in_time = now < trusted_until(asked_at_, options_.ttl);
  // Enough votes, but a server knows of a larger token: that is better for all.
  const bool is_overtaken = highest_ >= token_;
  if (votes_.reached() && in_time && !is_overtaken) {
    splits_ = 0;
    state_ = State::granted;
    leave_queues();
    give_earlier_numbers_back();
    return;
  }
  if (!in_time) return round_failed(now);
  if (votes_.is_hopeless()) {
    // If a minority is down, a single refusal ends the round: a majority has to say for whom.
    if (votes_.are_told()) round_failed(now);
    return;
  }
  if (votes_.reached() || votes_.out_of_reach()) vote_again(now);
}

// With a larger token.  By how much is a matter of chance, or those that collide would do so again;
// and more each time, since the tokens of clients that are nearer grow meanwhile.  Or with another
// number, which is another round: a late vote for the last one must not bring that number back.
void AcquireProtocol::vote_again(Deadline now) {
  constexpr unsigned kMostTokenDoublings = 12;
  constexpr unsigned kMostNumbers = 4;  // those that always choose the same then rest, by chance
  const unsigned ahead = 4U << std::min(repeats_++, kMostTokenDoublings);
  if (votes_.count(Vote::taken) > 0) {
    number_ = repeats_ < kMostNumbers ? free_number() : 0;
    if (number_ == 0) return round_failed(now);
    ++round_;
  }
  if (highest_ >= token_) token_ = highest_ + 1 + random_() % ahead;
  for (unsigned server = 0; server < servers(); ++server) {
    const Vote vote = votes_.at(server);
    if (vote != Vote::no && vote != Vote::silent) votes_.put(server, Vote::open);
  }
  ask_for_votes(now);
}

// A grant takes the waiter out of a server's queue, and so does a vote when it comes.
void AcquireProtocol::leave_queues() {
  if (!joins_ || grantor_) return;
  for (const unsigned server : options_.order) {
    if (!was_asked_[server] || votes_.at(server) == Vote::yes) continue;
    orders_.push_back({.kind = Order::Kind::leave_queue, .server = server});
  }
}

// A server where this number is another's keeps the one that an earlier round has got there.
void AcquireProtocol::give_earlier_numbers_back() {
  if (options_.slots == 0 || questions_.front().round == round_) return;
  for (const unsigned server : options_.order) {
    if (votes_.at(server) == Vote::yes) continue;
    orders_.push_back({.kind = Order::Kind::undo, .server = server, .round = round_ - 1});
  }
}

// 0: none is free on so many servers as are needed.
unsigned AcquireProtocol::free_number() const {
  std::vector<std::optional<std::string>> there(servers());
  for (unsigned server = 0; server < servers(); ++server) {
    const Vote vote = votes_.at(server);
    if (vote == Vote::no || vote == Vote::silent) continue;
    there[server] = taken_[server];
  }
  return lowest_free_number(options_.slots, quorum(servers()), there);
}

// A front round has told that the queue server is right.
void AcquireProtocol::round_failed(Deadline now) {
  if (is_given_up_) {
    state_ = State::given_up;
    return;
  }
  if (!is_front_round_) ++splits_;
  undo();
  if (is_front_round_ && conflicts_ >= quorum(servers())) {
    state_ = State::conflict;
    return;
  }
  joins_ = options_.waits;
  constexpr Millis kFirst{60};
  constexpr Millis kLeast{100};
  constexpr Millis kOtherMode{500};  // such a waiter is in no queue
  if (is_front_round_ && !other_mode_.empty()) return rest(now, kOtherMode / 2, kOtherMode);
  if (splits_ <= kQuietSplits) return rest(now, Millis{2}, kFirst);
  const Millis most = std::min(kLeast * (1 << std::min(splits_, kMostRestDoublings)), kLongestRest);
  rest(now, most / 2, most);
}

// At the queue server nobody is offered the lock the first time: this waiter asks again at once.
void AcquireProtocol::undo() {
  for (const unsigned server : options_.order) {
    if (!was_asked_[server]) continue;
    const bool quiet = server == queue_server_ && splits_ <= kQuietSplits;
    orders_.push_back(
        {.kind = Order::Kind::undo, .server = server, .round = round_, .quiet = quiet});
  }
}

void AcquireProtocol::rest(Deadline now, Millis from, Millis to) {
  state_ = State::resting;
  wake_at_ = after(now, chance(from, to));
  wakes_by_timer_ = false;
}

// -------------------------------------------------------------------------------- messages, time

void AcquireProtocol::heard(unsigned server, const Message& message, Deadline now) {
  if (message.kind == Message::Kind::other) return;
  const bool is_now = message.kind == Message::Kind::revoked || message.in == Millis{0};
  if (state_ == State::asking) {
    message_at_ = std::min(message_at_, after(now, message.in));
  } else if (is_idle() && is_now) {
    begin_to_ask(now, false, server);
  } else if (state_ == State::sleeping) {
    wake_at_ = std::min(wake_at_, after(now, message.in));
  }
}

Deadline AcquireProtocol::wake_at() const {
  switch (state_) {
    case State::asking:
      return std::min(answer_until_, ask_next_at_);
    case State::voting:
      return answer_until_;
    case State::sleeping:
    case State::resting:
      return wake_at_;
    default:
      return kNever;
  }
}

void AcquireProtocol::tick(Deadline now) {
  if (now < wake_at()) return;
  switch (state_) {
    case State::asking:
      if (now >= answer_until_) return no_answer(now);
      ask_next(now, std::nullopt);
      return;
    case State::voting:
      for (unsigned server = 0; server < servers(); ++server) {
        if (votes_.at(server) == Vote::open) votes_.put(server, Vote::silent);
      }
      return judge(now);
    case State::sleeping:
    case State::resting:
      return begin_to_ask(now, wakes_by_timer_, std::nullopt);
    default:
      return;
  }
}

}  // namespace dlock::redis
