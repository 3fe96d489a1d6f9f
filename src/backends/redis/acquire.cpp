#include "backends/redis/acquire.hpp"

#include <algorithm>
#include <utility>

#include "backends/redis/look.hpp"
#include "backends/redis/quorum.hpp"
#include "backends/redis/record.hpp"
#include "backends/redis/redis_lease.hpp"
#include "backends/redis/server_errors.hpp"
#include "backends/redis/server_reports.hpp"
#include "core/acquire_loop.hpp"
#include "util/log.hpp"
#include "util/random_id.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

using State = AcquireProtocol::State;
using Order = AcquireProtocol::Order;

// Rounds in a row that a queue server has granted and too few others, although no holder keeps the
// lock from us: then a waiter with --nonblock gives up.
constexpr unsigned kMostSplits = 4;

class RedisSteps final : public AcquireSteps {
 public:
  RedisSteps(std::shared_ptr<Cluster> cluster, const Request& request, const Wait& wait,
             Patience& patience)
      : cluster_(std::move(cluster)),
        request_(request),
        wait_(wait),
        patience_(patience),
        reports_(*cluster_) {
    become_waiter(request.owner.id);
  }

  Result<Attempt> attempt() override;
  Result<LockInfo> describe() override;
  Result<bool> wait(Deadline until) override;
  void recover(const Error& why) override;
  Result<void> leave() override;

 private:
  bool single() const { return cluster_->size() == 1; }
  void become_waiter(std::string id);
  Leaver leaver() const;

  void exchange();
  void take_answers();
  void hear();
  void poll_if_unsubscribed(unsigned server);

  Result<Attempt> granted();
  Result<std::optional<Attempt>> round_failed(Deadline give_up);
  void await_the_others();
  bool may_try_again(const Error& why);
  Attempt refused();
  void warn_of_another_list();
  Error cancelled() const {
    return {Errc::cancelled, "stopped waiting for " + util::in_quotes(request_.key)};
  }

  const std::shared_ptr<Cluster> cluster_;
  const Request request_;
  const Wait& wait_;
  Patience& patience_;
  const Deadline came_ = Clock::now();
  // Of this waiter; another one takes its place if it was broken.
  std::shared_ptr<Subscriptions> subscriptions_;
  std::optional<Requests> requests_;
  std::optional<AcquireProtocol> protocol_;

  ServerReports reports_;
  bool asked_all_ = false;  // in this attempt
  unsigned splits_ = 0;
  bool was_cut_off_ = false;
  bool has_told_of_asking_ = false;
  bool has_warned_ = false;
};

void RedisSteps::become_waiter(std::string id) {
  const WaiterId waiter{.id = std::move(id),
                        .mode = mode_text(request_.mode, request_.slots),
                        .names = cluster_->names(request_.key)};
  std::vector<unsigned> order;
  for (unsigned rank = 0; rank < cluster_->size(); ++rank) order.push_back(cluster_->ranked(rank));
  // One that did not answer the last time would cost a moment each time.
  std::stable_partition(order.begin(), order.end(),
                        [&](unsigned server) { return cluster_->answered_last_time(server); });
  subscriptions_ = std::make_shared<Subscriptions>(cluster_->size());
  requests_.emplace(cluster_, request_, waiter, came_, subscriptions_, wait_.cancel);
  protocol_.emplace(AcquireProtocol::Options{
      .order = std::move(order),
      .ttl = request_.ttl,
      .slots = request_.mode == Mode::slots ? request_.slots : 0,
      .waits = !patience_.tries_once(),
      .round_within = 3 * answer_within(request_.ttl),  // it may have to connect
      .seed = util::random_seed()});
  reports_.forget();
}

Leaver RedisSteps::leaver() const {
  return {.waiter = requests_->waiter(),
          .round = protocol_->round(),
          .queue_server = protocol_->queue_server(),
          .request = request_,
          .asked = requests_->asked()};
}

// --------------------------------------------------------------------------------------- exchanges

// Sends what is to be sent, and takes what has come.
void RedisSteps::exchange() {
  take_answers();
  while (protocol_->has_orders()) {
    for (const Order& order : protocol_->take_orders()) {
      asked_all_ = asked_all_ || order.kind == Order::Kind::vote;
      reports_.begin_round(order.round);
      requests_->send(order, patience_.call_until());
    }
    take_answers();
  }
}

void RedisSteps::take_answers() {
  while (auto answer = requests_->take()) {
    const Order& order = answer->order;
    const bool is_ask = order.kind == Order::Kind::ask;
    if (!is_ask && order.kind != Order::Kind::vote) continue;
    if (!answer->reply) {
      const Error& error = answer->reply.error();
      const bool was_sent = single() || error.code != Errc::cancelled;
      if (was_sent) reports_.failed(order.server, error);
      protocol_->failed(order, Clock::now());
      continue;
    }
    if (single()) patience_.answered();
    if (is_ask) {
      if (order.join) poll_if_unsubscribed(order.server);
      const AskAnswer its = ask_answer(*answer->reply);
      reports_.answered(order.server, its.holder, its.record);
      protocol_->answered(order, its, Clock::now());
    } else {
      const VoteAnswer its = vote_answer(*answer->reply);
      reports_.answered(order.server, its.holder, its.record);
      protocol_->answered(order, its, Clock::now());
    }
  }
}

// Where no message comes, as behind a proxy that passes no SUBSCRIBE.
void RedisSteps::poll_if_unsubscribed(unsigned server) {
  const auto trouble = subscriptions_->trouble(server);
  if (!trouble) return;
  protocol_->set_polling();
  if (std::exchange(has_told_of_asking_, true)) return;
  util::log(util::Level::note, "waiting for " + util::in_quotes(request_.key) +
                                   " by asking again twice a second: " + trouble->message);
}

void RedisSteps::hear() {
  for (const auto& [server, text] : subscriptions_->read()) {
    // Without a connection nobody calls, and what was said just before its end may be lost.
    const Message message =
        text.empty() ? Message{.kind = Message::Kind::ask} : parse_message(text);
    protocol_->heard(server, message, Clock::now());
  }
}

// --------------------------------------------------------------------------------------- the steps

Result<AcquireSteps::Attempt> RedisSteps::attempt() {
  const Deadline give_up = patience_.call_until();
  reports_.forget_answers();
  asked_all_ = protocol_->state() == State::voting;
  const bool goes_on = protocol_->is_asking() || protocol_->state() == State::granted;
  if (!goes_on) protocol_->ask(Clock::now());
  unsigned failed_round = 0;
  for (;;) {
    exchange();
    if (wait_.cancel.requested()) return cancelled();
    switch (protocol_->state()) {
      case State::granted:
        return granted();
      case State::conflict:
        return mode_conflict(request_.key, request_.claim(),
                             parse_mode_text(protocol_->other_mode()));
      case State::duplicate:
        return duplicate_server(*cluster_, protocol_->duplicate().first,
                                protocol_->duplicate().second);
      case State::given_up:
        (void)leave();  // who broke it has removed what it had
        become_waiter(util::random_id());
        protocol_->ask(Clock::now());
        failed_round = 0;
        continue;
      case State::sleeping:
        if (protocol_->wake_at() <= Clock::now()) {  // it was refused, and is to join the queue
          protocol_->tick(Clock::now());
          continue;
        }
        if (patience_.tries_once() && protocol_->start_last_round(Clock::now())) continue;
        // If all were asked, only a majority of them can say that it is busy.
        if (asked_all_) await_the_others();
        if (const auto error = reports_.too_few(asked_all_)) return *error;
        return refused();
      case State::resting:
        if (protocol_->round() != std::exchange(failed_round, protocol_->round())) {
          auto attempt = round_failed(give_up);
          if (!attempt) return attempt.error();
          if (*attempt) return std::move(**attempt);
          if (protocol_->is_asking()) continue;
        }
        break;
      case State::asking:
      case State::voting:
        break;
    }
    const auto end = cluster_->wait(protocol_->wake_at(), wait_.cancel, subscriptions_->fd());
    if (end == Cluster::End::cancelled) return cancelled();
    hear();
    take_answers();
    protocol_->tick(Clock::now());
  }
}

Result<AcquireSteps::Attempt> RedisSteps::granted() {
  exchange();
  if (const auto server = reports_.with_another_list()) {
    (void)leave();
    return Error{Errc::invalid, cluster_->address(*server).shown + ": " +
                                    util::in_quotes(request_.key) +
                                    " is held by a client with another list of servers, so a "
                                    "majority of these means nothing: give all the same list"};
  }
  // No process keeps the lock: this one is about to exit.  The servers that are a moment slower
  // than the majority get the lock too, so that it survives if one of the others loses its data.
  if (!single() && request_.owner.lease) {
    cluster_->wait_for_stragglers(after(Clock::now(), stragglers_within(request_.ttl)));
  }
  auto lease =
      make_lease(cluster_, {.holder = leaver(),
                            .acquired_at = requests_->acquired_at(),
                            .token = protocol_->token(),
                            .number = protocol_->number(),
                            .asked_at = protocol_->asked_at(),
                            .valid_until = trusted_until(protocol_->asked_at(), request_.ttl),
                            .subscriptions = subscriptions_});
  return Attempt{std::move(lease), ""};
}

// Nothing: it goes on, without a word to the caller.
Result<std::optional<AcquireSteps::Attempt>> RedisSteps::round_failed(Deadline give_up) {
  const bool is_over = !patience_.tries_once() && Clock::now() >= wait_.until;
  if (const auto error = reports_.too_few(is_over || Clock::now() >= give_up)) {
    if (!may_try_again(*error)) {
      await_the_others();
      return reports_.too_few(true).value_or(*error);
    }
    protocol_->ask(Clock::now());
    return std::nullopt;
  }
  if (!reports_.has_quorum()) return std::nullopt;
  if (reports_.with_another_list()) warn_of_another_list();
  const auto held_at = reports_.majority_holder();
  splits_ = held_at ? 0 : splits_ + 1;
  if (splits_ >= kMostSplits) {
    splits_ = 0;
    const Votes& votes = protocol_->votes();
    if (votes.count(Votes::Vote::silent) >= votes.needed()) {
      return Error{Errc::unreachable,
                   cluster_->address(protocol_->queue_server()).shown +
                       " and others grant the lock, but too slowly for this TTL"};
    }
    const bool lacks_number = votes.count(Votes::Vote::taken) > 0;  // although no server is full
    return Attempt{nullptr, lacks_number ? "holders of all numbers" : ""};
  }
  if (!held_at && patience_.tries_once()) return std::nullopt;
  return Attempt{nullptr, held_at ? reports_.holder(*held_at) : ""};
}

// Or they would be counted as servers that have answered.
void RedisSteps::await_the_others() {
  const Deadline until = after(Clock::now(), answer_within(request_.ttl));
  while (reports_.is_one_missing()) {
    if (cluster_->wait(until, wait_.cancel) != Cluster::End::enough) return;
    take_answers();
  }
}

// If only the answer was lost, a second try need not wait for the service to come back.
bool RedisSteps::may_try_again(const Error& why) {
  const auto& asked = *requests_->asked();
  const bool was_sent =
      std::ranges::any_of(asked, [](const Asked& its) { return its.is_sent.load(); });
  const bool is_in_time = Clock::now() < patience_.call_until();
  return patience_.tries_once() && why.code == Errc::unreachable && was_sent && is_in_time &&
         !std::exchange(was_cut_off_, true);
}

AcquireSteps::Attempt RedisSteps::refused() {
  splits_ = 0;
  const AskAnswer& refusal = protocol_->refusal();
  const bool is_ours = !refusal.record.empty();
  if (is_ours && is_offer(refusal.holder)) return {nullptr, ""};  // to another waiter
  requests_->set_seen(refusal.holder.substr(0, refusal.holder.find(':')));
  if (reports_.has_another_list(protocol_->queue_server())) warn_of_another_list();
  std::string seen = refusal.holder.empty() ? "another program" : refusal.holder;
  if (single()) seen += ", place " + std::to_string(refusal.place);
  return {nullptr, std::move(seen)};
}

// The queue server has told it with its refusal, unless others refuse for another holder.
Result<LockInfo> RedisSteps::describe() {
  const AskAnswer& refusal = protocol_->refusal();
  const auto other =
      protocol_->state() == State::sleeping ? std::nullopt : reports_.majority_holder();
  const bool is_the_same = other && reports_.holder(*other) == refusal.holder;
  const bool is_refused = protocol_->state() == State::sleeping || is_the_same;
  const unsigned server = other.value_or(protocol_->queue_server());
  LockInfo info{.key = request_.key};
  if (is_refused && !refusal.holder.empty()) {
    if (const auto record = parse_record(refusal.record)) {
      info.mode = record->mode;
      info.slots = record->slots;
    }
    info.holders.push_back(holder_of("string", refusal.holder, refusal.record, refusal.left));
  } else {
    const Deadline until = patience_.call_until();
    auto found = cluster_->call<LockInfo>(
        server,
        [key = request_.key, until](Node& node, Cancel cancel) {
          return node.look(key, until, cancel);
        },
        wait_.cancel);
    if (!found) return found.error();
    info = std::move(*found);
  }
  info.waiters.reset();
  if (!is_refused) return info;
  info.holder_count = refusal.holders;
  info.waiter_count = refusal.waiting;
  if (single() && refusal.place >= 0) info.place = static_cast<unsigned>(refusal.place) + 1;
  return info;
}

Result<bool> RedisSteps::wait(Deadline until) {
  subscriptions_->open();
  for (;;) {
    exchange();  // also undoes what came late, or it is granted the lock by that
    if (!protocol_->is_idle()) return true;
    const auto end =
        cluster_->wait(std::min(protocol_->wake_at(), until), wait_.cancel, subscriptions_->fd());
    if (end == Cluster::End::cancelled) return cancelled();
    hear();
    if (Clock::now() < until) protocol_->tick(Clock::now());
    if (!protocol_->is_idle()) return true;
    if (Clock::now() >= until) return protocol_->start_last_round(Clock::now());
  }
}

void RedisSteps::recover(const Error&) {
  for (const unsigned server : cluster_->all()) {
    if (reports_.has_failed(server)) subscriptions_->drop(server);
  }
}

// The queue must not wait for us, and what was perhaps granted must not wait for its end.
Result<void> RedisSteps::leave() {
  if (single() && !requests_->asked()->front().is_sent) return {};
  const Millis patience = cluster_->address(protocol_->queue_server()).patience;
  const Deadline deadline = after(Clock::now(), std::min(patience, kFarewell));
  // This process may be about to exit, and a server may be busy with what was asked before.
  const Millis moment = 2 * answer_within(request_.ttl);
  const auto answers = leave_for_good(*cluster_, leaver(), moment, deadline, Cancel());
  const auto& error = answers.errors().front();
  return single() && error ? Result<void>(*error) : Result<void>();
}

void RedisSteps::warn_of_another_list() {
  if (std::exchange(has_warned_, true)) return;
  util::log(util::Level::warning,
            util::in_quotes(request_.key) +
                " is held by a client with another list of servers, or with other names for them: "
                "clients exclude each other only if all have the same list");
}

}  // namespace

Result<std::unique_ptr<Lease>> acquire(const std::shared_ptr<Cluster>& cluster,
                                       const Request& request, const Wait& wait) {
  Patience patience(wait, cluster->address(cluster->ranked(0)).patience, request.key);
  RedisSteps steps(cluster, request, wait, patience);
  return acquire_loop(steps, request, wait, patience);
}

}  // namespace dlock::redis
