// Renewal.  Counts if a majority has extended the lock.  When it has succeeded without a server
//           that has lost its data, this server votes again, for the rest of the lease, unless the
//           lock is taken there: else a job would not outlive a restart of one after another.  The
//           first answers that decide are enough; nobody waits for a slow server.  But if no
//           process keeps the lock (Owner::lease), this process is about to exit and the next
//           renewal may be far away: then the other servers have a moment to finish.
// News.     Once the job has run for a while we listen at every server, since a force-release may
//           reach any majority of them.  The server also tells when the key is changed by others,
//           as by an operator who deletes it (client-side caching, Redis 6): what a renewal reads
//           it watches.  Not of a lock that is shared: there each that comes or goes would be news
//           for all.  Subscriptions are opened by the servers' own threads: one that cannot be
//           reached must not hold up the renewals.
#include "backends/redis/redis_lease.hpp"

#include <algorithm>

#include "backends/redis/quorum.hpp"
#include "backends/redis/record.hpp"
#include "backends/redis/server_errors.hpp"
#include "core/marks.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

// A subscription is a convenience: it must not hold up the renewals.
constexpr Millis kSubscribing{1'000};

// A convenience as well: what cannot be watched is seen at the next renewal.  It is connected.
void watch(Subscriptions& subscriptions, Node& node, unsigned server, Deadline until,
           Cancel cancel) {
  if (subscriptions.at(server) != Subscriptions::State::subscribed) return;
  const std::int64_t id = subscriptions.tracking_redirect(server, node.connection());
  if (id == 0) return;
  const std::vector<Command> commands{
      {"CLIENT", "TRACKING", "ON", "REDIRECT", std::to_string(id), "NOLOOP"}};
  (void)node.ask(commands, until, cancel);
}

class RedisLease final : public Lease {
 public:
  RedisLease(std::shared_ptr<Cluster> cluster, Grant grant)
      : cluster_(std::move(cluster)),
        holder_(std::move(grant.holder)),
        acquired_at_(std::move(grant.acquired_at)),
        token_(grant.token),
        number_(grant.number),
        asked_at_(grant.asked_at),
        valid_until_(grant.valid_until),
        subscriptions_(std::move(grant.subscriptions)) {
    request().owner.id = holder_.waiter.grant_id(holder_.round);
  }

  const std::string& owner_id() const override { return holder_.request.owner.id; }
  std::optional<std::uint64_t> fence() const override {
    return token_ == 0 ? std::nullopt : std::optional(token_);
  }
  std::optional<unsigned> slot() const override {
    return number_ == 0 ? std::nullopt : std::optional(number_);
  }
  Deadline valid_until() const override { return valid_until_; }
  Result<void> renew(Deadline deadline, Cancel cancel) override;
  Result<void> end_command(Deadline until, Deadline deadline, Cancel cancel) override;
  int event_fd() override {
    subscriptions_->open();
    return subscriptions_->fd();
  }
  bool has_news() override;
  void subscribe() override {
    if (event_fd() >= 0) (void)subscribe(kNever, Cancel());
  }
  Result<void> release(Deadline deadline, Cancel cancel) override {
    // A server that is slower has the request, or its lock ends with the ttl.
    const Millis moment = answer_within(request().ttl) / 2;
    return leave_for_good(*cluster_, holder_, moment, deadline, cancel).verdict();
  }
  Result<void> complete(const Completion& completion, Deadline deadline, Cancel cancel) override;

 private:
  bool single() const { return cluster_->size() == 1; }
  Request& request() { return holder_.request; }
  const Request& request() const { return holder_.request; }
  std::string record(unsigned server, Millis ttl) const;
  ScriptCall renewal(unsigned server, Millis ttl) const;
  enum class WaitFor { majority, all };
  Result<void> extend(Millis ttl, WaitFor servers, Deadline deadline, Cancel cancel);
  void wait_for_stragglers(Deadline deadline) const;
  bool subscribe(Deadline deadline, Cancel cancel);  // true: where it was not before
  void warn_of_bad_list(const HolderAnswers& answers);
  void warn_of_endless_lock() const;
  void vote_again();

  const std::shared_ptr<Cluster> cluster_;
  Leaver holder_;
  const std::string acquired_at_;
  const std::uint64_t token_;
  const unsigned number_;
  const Deadline asked_at_;
  Deadline valid_until_;
  bool has_warned_ = false;
  const std::shared_ptr<Subscriptions> subscriptions_;
};

std::string RedisLease::record(unsigned server, Millis ttl) const {
  return format_record({.owner = request().owner,
                        .mode = request().mode,
                        .slots = request().slots,
                        .acquired_at = acquired_at_,
                        .ttl = ttl,
                        .held = since(asked_at_),
                        .fence = fence(),
                        .slot = slot(),
                        .servers = cluster_->list(),
                        .node = cluster_->number(server)});
}

ScriptCall RedisLease::renewal(unsigned server, Millis ttl) const {
  return call(
      holder_.waiter, holder_.round,
      Renew{.ttl = ttl, .record = record(server, ttl), .server = cluster_->number_text(server)});
}

Result<void> RedisLease::renew(Deadline deadline, Cancel cancel) {
  (void)subscriptions_->read();
  // Of a lease that was resumed: a renewal without its token would take that from the records.
  if (!single() && token_ == 0) {
    return Error{Errc::unreachable, "too few servers answered to determine the fencing number of " +
                                        util::in_quotes(request().key)};
  }
  if (auto ok = extend(request().ttl, WaitFor::majority, deadline, cancel); !ok) return ok;
  if (subscriptions_->fd() < 0 || !subscribe(deadline, cancel)) return {};
  // What has happened before it was subscribed again.
  return extend(request().ttl, WaitFor::majority, deadline, cancel);
}

// The server tells of every key that the renewal names, and somebody comes to the queue now and
// then; an earlier call to the waiter may still be on its way.
bool RedisLease::has_news() {
  return std::ranges::any_of(subscriptions_->read(), [&](const auto& message) {
    const std::string& text = message.second;
    return text.empty() || text == holder_.waiter.names.lock ||
           parse_message(text).kind == Message::Kind::revoked;
  });
}

Result<void> RedisLease::end_command(Deadline until, Deadline deadline, Cancel cancel) {
  request().owner.ended = true;
  request().owner.pid = 0;
  // A server that is left out keeps the lock for the whole ttl, and its waiters sleep for as long.
  return extend(std::max(remaining(until), Millis{1}), WaitFor::all, deadline, cancel);
}

Result<void> RedisLease::extend(Millis ttl, WaitFor servers, Deadline deadline, Cancel cancel) {
  const Deadline asked_at = Clock::now();
  const Millis timeout = answer_within(request().ttl);
  HolderAnswers answers(*cluster_, request().key);
  std::vector<unsigned> nodes;
  std::vector<ScriptCall> calls;
  for (const unsigned server : cluster_->all()) {
    calls.push_back(renewal(server, ttl));
    if (cluster_->has_backlog(server)) {
      answers.put_error(server,
                        {Errc::unreachable, cluster_->address(server).shown + ": still no answer"});
    } else {
      nodes.push_back(server);
    }
  }
  bool was_endless = false;
  const auto end = cluster_->gather<RenewAnswer>(
      nodes,
      [calls = std::move(calls), is_exclusive = request().mode == Mode::exclusive, deadline,
       single = single(), timeout, subscriptions = subscriptions_,
       asked = holder_.asked](Node& node, unsigned server, Cancel stop) -> Result<RenewAnswer> {
        const Deadline connected = node.patience(single ? deadline : kNever);
        if (auto ok = node.connect(connected, stop); !ok) return ok.error();
        subscriptions->drop_unless_at(server, node.address().host);
        if (is_exclusive) watch(*subscriptions, node, server, connected, stop);
        const Deadline until = single ? deadline : after(Clock::now(), timeout);
        const auto reply = node.run(calls[server], until, stop);
        if (!reply) return reply.error();
        auto answer = renew_answer(reply.value());
        if (answer.kind == RenewAnswer::Kind::renewed) {
          if (auto ok = node.replicated(until, stop); !ok) return ok.error();
        }
        (*asked)[server].lacks_lock = answer.kind == RenewAnswer::Kind::free && answer.why.empty();
        return answer;
      },
      [&](unsigned server, const Result<RenewAnswer>& reply) {
        if (!reply) {
          answers.put_error(server, reply.error());
        } else if (const RenewAnswer& answer = reply.value();
                   answer.kind == RenewAnswer::Kind::duplicate) {
          answers.put_error(server, duplicate_server(*cluster_, server, answer.duplicate));
        } else if (answer.kind == RenewAnswer::Kind::renewed) {
          answers.put_yes(server);
          was_endless = was_endless || answer.had_no_ttl;
        } else {
          answers.put_no(server, answer.why, answer.kind == RenewAnswer::Kind::free);
        }
        const Votes& votes = answers.votes();
        return servers == WaitFor::majority && (votes.reached() || votes.denied());
      },
      // Who is slow is waited for, or who has to be connected again, only as long as they are
      // needed.
      [&] {
        const bool is_enough = answers.votes().reached();
        return is_enough ? std::min(deadline, after(asked_at, timeout)) : deadline;
      },
      cancel);
  if (end == Cluster::End::cancelled) answers.cancel();
  warn_of_bad_list(answers);
  if (auto ok = answers.verdict(); !ok) return ok;
  valid_until_ = trusted_until(asked_at, ttl);
  const Votes& votes = answers.votes();
  const unsigned answered = votes.count(Votes::Vote::yes) + votes.count(Votes::Vote::no);
  if (servers == WaitFor::all && answered < cluster_->size()) {
    return Error{Errc::unreachable, "not all servers have answered"};
  }
  if (!single() && servers == WaitFor::majority) {
    wait_for_stragglers(deadline);
    vote_again();
    wait_for_stragglers(deadline);
  }
  if (was_endless) warn_of_endless_lock();
  return {};
}

void RedisLease::wait_for_stragglers(Deadline deadline) const {
  if (!request().owner.lease) return;
  cluster_->wait_for_stragglers(
      std::min(deadline, after(Clock::now(), stragglers_within(request().ttl))));
}

// Nobody waits for it.
void RedisLease::vote_again() {
  for (const unsigned server : cluster_->all()) {
    if (cluster_->has_backlog(server) || !(*holder_.asked)[server].lacks_lock.exchange(false))
      continue;
    const VoteRequest vote{.ttl = remaining(valid_until_),
                           .record = record(server, request().ttl),
                           .token = token_,
                           .number = number_,
                           .server = cluster_->number_text(server),
                           .again = true};
    Cluster::Answers<Result<Reply>> answers(*cluster_, Cancel());
    answers.ask(
        server, [call = call(holder_.waiter, holder_.round, vote), asked = holder_.asked,
                 timeout = answer_within(request().ttl)](Node& node, unsigned its, Cancel stop) {
          return ask_and_note((*asked)[its], node,
                              [&] { return node.run(call, after(Clock::now(), timeout), stop); });
        });
  }
}

// A majority was there without the server in question, so it was not noticed before.
void RedisLease::warn_of_bad_list(const HolderAnswers& answers) {
  if (single() || has_warned_) return;
  for (const auto& error : answers.errors()) {
    if (!error || error->code != Errc::invalid) continue;
    has_warned_ = true;
    return util::log(util::Level::warning, error->message + "; it does not count");
  }
}

void RedisLease::warn_of_endless_lock() const {
  util::log(util::Level::warning, cluster_->address(0).shown + ": somebody removed the TTL of " +
                                      util::in_quotes(request().key) +
                                      " (PERSIST); it has one again");
}

bool RedisLease::subscribe(Deadline deadline, Cancel cancel) {
  std::vector<unsigned> missing;
  for (const unsigned server : cluster_->all()) {
    const bool is_missing = subscriptions_->at(server) == Subscriptions::State::missing;
    if (is_missing && cluster_->answered_last_time(server)) missing.push_back(server);
  }
  if (missing.empty()) return false;
  const std::string channel = holder_.waiter.names.channels + holder_.waiter.id;
  const Deadline until =
      std::min(deadline, after(Clock::now(), std::min(kSubscribing, request().ttl / 10)));
  bool is_new = false;
  cluster_->gather<bool>(
      missing,
      [channel, until, subscriptions = subscriptions_](Node& node, unsigned server,
                                                       Cancel stop) -> Result<bool> {
        const auto ok = subscriptions->subscribe(server, node.address(), channel, until, stop);
        if (ok) return true;
        util::log(
            util::Level::detail,
            "a force-release will be noticed at the next renewal only: " + ok.error().message);
        return false;
      },
      [&](unsigned, const Result<bool>& is_subscribed) {
        is_new = is_new || is_subscribed.value();
        return false;
      },
      [&] { return until; }, cancel);
  return is_new;
}

Result<void> RedisLease::complete(const Completion& completion, Deadline deadline, Cancel cancel) {
  if (!single()) return Lease::complete(completion, deadline, cancel);
  Node& node = cluster_->node(0);
  const std::string mark = record_key(node.prefix(), record_of({request().key, completion.period}));
  const auto reply =
      node.run(complete_call(holder_.waiter, holder_.round, mark,
                             format_mark(request().owner, fence(), completion.remember),
                             completion.remember),
               deadline, cancel);
  if (!reply) return reply.error();
  HolderAnswers answers(*cluster_, request().key);
  if (reply.value().at(0).number() == 1) {
    if (auto ok = node.replicated(deadline, cancel); !ok) return ok;
    answers.put_yes(0);
    // Or what was not answered then would get the lock when it arrives.
    if (holder_.asked->front().is_unanswered) (void)release(deadline, cancel);
  } else {
    answers.put_no(0, reply.value().at(1).text, reply.value().at(2).text == "none");
  }
  return answers.verdict();
}

}  // namespace

std::unique_ptr<Lease> make_lease(std::shared_ptr<Cluster> cluster, Grant grant) {
  return std::make_unique<RedisLease>(std::move(cluster), std::move(grant));
}

}  // namespace dlock::redis
