// Renewal.  Counts if a majority has extended the lock.  A server that has lost its data is given
// the
//           rest of the lease when such a renewal has succeeded without it, unless the lock is
//           taken there (tests/sim has that): else a job would not outlive a restart of one after
//           another. The first answers that decide are enough; who is slow answers to nobody.
//           But if no process keeps the lock (Owner::lease), this process is about to exit and the
//           next renewal may be far away: then the other servers have a moment to finish.
// News.     Once the job has run for a while we listen at every server, since a force-release may
//           reach any majority of them.  The server also tells when the key is changed by others,
//           as by an operator who deletes it (client-side caching, Redis 6): what a renewal reads
//           it watches.  Not of a lock that is shared: there each that comes or goes would be news
//           for all.  Subscriptions are opened by the servers' own threads: one that cannot be
//           reached must not hold up the renewals.
#include "backends/redis/redis_lease.hpp"

#include <algorithm>

#include "backends/redis/attempt.hpp"
#include "backends/redis/ears.hpp"
#include "backends/redis/record.hpp"
#include "backends/redis/reply.hpp"
#include "backends/redis/round.hpp"
#include "core/marks.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

// How long a release waits for its majority: on a busy machine the servers are slow.
constexpr Millis kReleasing{1'000};
// A subscription is a convenience: it must not hold up the renewals.
constexpr Millis kSubscribing{1'000};

// Also a refusal tells nothing of the lock: it may be ours all the same.
Error not_told(Error error) {
  if (error.code != Errc::cancelled) error.code = Errc::unreachable;
  return error;
}

// A convenience as well: what cannot be watched is seen at the next renewal.
void watch(Ears& ears, Node& node, unsigned number, Deadline until, Cancel cancel) {
  if (!ears.hears(number) || !node.connect(until, cancel)) return;
  const std::int64_t id = ears.to_be_told(number, node.connection());
  if (id == 0) return;
  const std::vector<Command> commands{
      {"CLIENT", "TRACKING", "ON", "REDIRECT", std::to_string(id), "NOLOOP"}};
  (void)node.ask(commands, until, cancel);
}

class RedisLease final : public Lease {
 public:
  RedisLease(std::shared_ptr<Cluster> cluster, Grant grant)
      : cluster_(std::move(cluster)),
        request_(std::move(grant.request)),
        acquired_at_(std::move(grant.acquired_at)),
        agreed_(grant.agreed),
        asked_(grant.asked),
        needed_(quorum(cluster_->size())),
        valid_until_(grant.valid_until),
        ears_(std::make_shared<Ears>(cluster_->size())),
        head_(grant.head),
        is_queued_(grant.is_queued),
        outstanding_(std::move(grant.outstanding)),
        forgetful_(std::make_shared<Outstanding>(cluster_->size())),
        leftovers_(std::move(grant.leftovers)),
        waiters_subscription_(std::move(grant.subscription)) {}

  const std::string& owner_id() const override { return request_.owner.id; }
  std::optional<std::uint64_t> fence() const override {
    return agreed_.token == 0 ? std::nullopt : std::optional(agreed_.token);
  }
  std::optional<unsigned> slot() const override {
    return agreed_.slot == 0 ? std::nullopt : std::optional(agreed_.slot);
  }
  Deadline valid_until() const override { return valid_until_; }
  Result<void> renew(Deadline deadline, Cancel cancel) override;
  Result<void> end_command(Deadline until, Deadline deadline, Cancel cancel) override;
  int event_fd() override;
  void subscribe() override {
    if (event_fd() >= 0) subscribe(kNever, Cancel());
  }
  Result<void> release(Deadline deadline, Cancel cancel) override;
  Result<void> complete(const Completion& completion, Deadline deadline, Cancel cancel) override;

 private:
  // What the servers said to a renewal or a release.
  struct Answers {
    explicit Answers(unsigned nodes, unsigned needed) : tally(nodes, needed), errors(nodes) {}
    Tally tally;
    std::vector<std::optional<Error>> errors;
    std::string why;    // of a force-release
    std::string found;  // where it is not ours
    Cluster::End end = Cluster::End::all_answered;

    void put(unsigned node, const Error& error);
    void put(unsigned node, bool ours, const std::string& its_why, const std::string& its_found);
  };

  bool single() const { return cluster_->size() == 1; }
  std::string record(Millis ttl) const;
  enum class WaitFor { majority, all };
  Result<void> extend(Millis ttl, WaitFor servers, Deadline deadline, Cancel cancel);
  void subscribe(Deadline deadline, Cancel cancel);
  Result<void> verdict(const Answers& answers) const;
  Error no_majority(const Answers& answers) const;
  Error no_token() const;
  void warn_of_bad_list(const Answers& answers);
  void give_again();

  const std::shared_ptr<Cluster> cluster_;
  Request request_;
  const std::string acquired_at_;
  const Agreed agreed_;
  const Deadline asked_;
  const unsigned needed_;
  Deadline valid_until_;
  bool has_warned_ = false;
  const std::shared_ptr<Ears> ears_;
  const unsigned head_;
  const bool is_queued_;
  const std::shared_ptr<Outstanding> outstanding_;
  const std::shared_ptr<Outstanding> forgetful_;  // servers that did not have it any more
  Leftovers leftovers_;
  std::unique_ptr<Subscription> waiters_subscription_;
};

std::string RedisLease::record(Millis ttl) const {
  Record out{.owner = request_.owner,
             .mode = request_.mode,
             .slots = request_.slots,
             .acquired_at = acquired_at_,
             .ttl = ttl,
             .held = since(asked_),
             .fence = single() ? fence() : std::nullopt,
             .slot = slot()};
  return format_record(out);
}

// Of the answers there were, if too few said that it is ours.
Result<void> RedisLease::verdict(const Answers& answers) const {
  if (answers.tally.reached()) return {};
  if (answers.end == Cluster::End::cancelled) {
    return Error{Errc::cancelled, "stopped waiting for " + cluster_->address(0).shown};
  }
  if (!answers.tally.denied()) return not_told(no_majority(answers));
  const std::string at = single() ? cluster_->address(0).shown + ": " : "";
  if (!answers.why.empty())
    return taken_away(single() ? cluster_->address(0).shown : "", request_.key, answers.why);
  if (!single()) {
    return Error{Errc::lost, std::to_string(answers.tally.count(Tally::Answer::no)) + " of " +
                                 std::to_string(cluster_->size()) +
                                 " servers do not have the lock any more: it expired, was deleted, "
                                 "or they lost their data"};
  }
  if (answers.found == "none") {
    return Error{Errc::lost, at + "the lock is not there any more: it expired, was deleted, or the "
                                  "server lost its data"};
  }
  return Error{Errc::lost, at + "somebody else holds it now"};
}

Error RedisLease::no_majority(const Answers& answers) const {
  auto errors = answers.errors;
  for (const unsigned node : cluster_->all()) {
    if (answers.tally.at(node) != Tally::Answer::open) continue;
    errors[node] = Error{Errc::unreachable, cluster_->address(node).shown + ": no answer in time"};
  }
  return too_few(needed_, errors);
}

// Only of a lease that was resumed: those that know the token were silent.
Error RedisLease::no_token() const {
  return {Errc::unreachable, "too few servers answered to determine the fencing number of " +
                                 util::in_quotes(request_.key)};
}

void RedisLease::Answers::put(unsigned node, const Error& error) {
  tally.put(node, Tally::Answer::silent);
  errors[node] = error;
}

void RedisLease::Answers::put(unsigned node, bool ours, const std::string& its_why,
                              const std::string& its_found) {
  tally.put(node, ours ? Tally::Answer::yes : Tally::Answer::no);
  if (ours) return;
  if (why.empty()) why = its_why;
  found = its_found;
}

Result<void> RedisLease::renew(Deadline deadline, Cancel cancel) {
  ears_->drain();
  // A renewal without it would take it from the records.
  if (!single() && agreed_.token == 0) return no_token();
  if (auto ok = extend(request_.ttl, WaitFor::majority, deadline, cancel); !ok) return ok;
  if (ears_->fd() >= 0) subscribe(deadline, cancel);
  return {};
}

Result<void> RedisLease::end_command(Deadline until, Deadline deadline, Cancel cancel) {
  request_.owner.ended = true;
  request_.owner.pid = 0;
  // A server that is left out keeps the lock for the whole ttl, and its waiters sleep for as long.
  return extend(std::max(remaining(until), Millis{1}), WaitFor::all, deadline, cancel);
}

Result<void> RedisLease::extend(Millis ttl, WaitFor servers, Deadline deadline, Cancel cancel) {
  const Deadline asked = Clock::now();
  const Millis timeout = node_timeout(request_.ttl);
  Answers answers(cluster_->size(), needed_);
  std::vector<unsigned> nodes;
  for (const unsigned node : cluster_->all()) {
    if (cluster_->is_behind(node)) {
      answers.put(node, {Errc::unreachable, cluster_->address(node).shown + ": still no answer"});
    } else {
      nodes.push_back(node);
    }
  }
  bool was_endless = false;
  Request request = request_;
  request.ttl = ttl;
  answers.end = cluster_->gather<Extension>(
      nodes,
      [request, record = record(ttl), agreed = agreed_, deadline, single = single(), timeout,
       ears = ears_, forgetful = forgetful_](Node& node, unsigned number, Cancel stop) {
        if (request.mode == Mode::exclusive) {
          const Deadline patience = after(Clock::now(), node.address().patience);
          watch(*ears, node, number, std::min(deadline, patience), stop);
        }
        const Deadline until = single ? deadline : after(Clock::now(), timeout);
        auto answer = node.extend(request, record, agreed, until, stop);
        // Of several holders another may be back already.
        const bool shares = request.mode != Mode::exclusive;
        const bool forgot = answer && !answer->ours && answer->why.empty() &&
                            (answer->found == "none" || (shares && answer->found == "zset"));
        (*forgetful)[number] = forgot && !answer->twin;
        return answer;
      },
      [&](unsigned node, const Result<Extension>& answer) {
        if (answer && answer.value().twin) {
          answers.put(node, twin_error(*cluster_, node, *answer.value().twin));
        } else if (answer) {
          answers.put(node, answer.value().ours, answer.value().why, answer.value().found);
          was_endless = was_endless || answer.value().was_endless;
        } else {
          answers.put(node, answer.error());
        }
        return servers == WaitFor::majority && (answers.tally.reached() || answers.tally.denied());
      },
      // Who is slow is waited for, or who has to be connected again, only as long as they are
      // needed.
      [&] {
        return answers.tally.reached() ? std::min(deadline, after(asked, timeout)) : deadline;
      },
      cancel);
  warn_of_bad_list(answers);
  if (auto ok = verdict(answers); !ok) return ok;
  valid_until_ = trusted_until(asked, ttl);
  if (servers == WaitFor::all && answers.tally.count(Tally::Answer::yes) < cluster_->size()) {
    return Error{Errc::unreachable, "not all servers have answered"};
  }
  if (!single() && servers == WaitFor::majority) {
    const auto let_others_finish = [&] {
      if (!request_.owner.lease) return;
      cluster_->let_finish(
          std::min(deadline, after(Clock::now(), straggler_timeout(request_.ttl))));
    };
    let_others_finish();
    give_again();
    leftovers_.ask_to_undo(*cluster_);
    let_others_finish();
  }
  if (was_endless) {
    util::log(util::Level::warning, cluster_->address(0).shown + ": somebody made " +
                                        util::in_quotes(request_.key) +
                                        " last for ever (PERSIST); it has its TTL again");
  }
  return {};
}

// Nobody waits for it; until it is answered a release has to leave a mark.
void RedisLease::give_again() {
  for (const unsigned number : cluster_->all()) {
    if (cluster_->is_behind(number) || !(*forgetful_)[number].exchange(false)) continue;
    Cluster::Answers<bool> answers(*cluster_, Cancel());
    answers.ask(number, [request = request_, record = record(request_.ttl), agreed = agreed_,
                         valid_until = valid_until_, timeout = node_timeout(request_.ttl),
                         outstanding = outstanding_](Node& node, unsigned its, Cancel stop) {
      const bool was_outstanding = (*outstanding)[its].exchange(true);
      auto given =
          node.give_again(request, record, agreed, valid_until, after(Clock::now(), timeout), stop);
      if (given) (*outstanding)[its] = was_outstanding;
      return given;
    });
  }
}

// A majority was there without the server in question, so it was not noticed before.
void RedisLease::warn_of_bad_list(const Answers& answers) {
  if (single() || has_warned_) return;
  for (const auto& error : answers.errors) {
    if (!error || error->code != Errc::invalid) continue;
    has_warned_ = true;
    return util::log(util::Level::warning, error->message + "; it does not count");
  }
}

void RedisLease::subscribe(Deadline deadline, Cancel cancel) {
  std::vector<unsigned> deaf;
  for (const unsigned node : cluster_->all()) {
    if (ears_->is_missing(node) && cluster_->is_prompt(node)) deaf.push_back(node);
  }
  if (deaf.empty()) return;
  const std::string channel = cluster_->names(request_.key).channels + request_.owner.id;
  const Deadline until =
      std::min(deadline, after(Clock::now(), std::min(kSubscribing, request_.ttl / 10)));
  cluster_->gather<bool>(
      deaf,
      [channel, until, ears = ears_](Node& node, unsigned number, Cancel stop) -> Result<bool> {
        auto subscription = Subscription::open(node.address(), channel, until, stop);
        if (subscription) {
          ears->add(number, std::move(*subscription));
          return true;
        }
        if (subscription.error().code != Errc::unreachable) ears->refused(number);
        util::log(util::Level::detail,
                  "a force-release will be noticed at the next renewal only: " +
                      subscription.error().message);
        return false;
      },
      [](unsigned, const Result<bool>&) { return false; }, [&] { return until; }, cancel);
}

int RedisLease::event_fd() {
  if (ears_->fd() >= 0 || !ears_->open()) return ears_->fd();
  if (waiters_subscription_ && waiters_subscription_->read({})) {
    ears_->add(head_, std::move(waiters_subscription_));
  }
  return ears_->fd();
}

// All servers are asked, and a majority is waited for: without it nobody else gets the lock.  A
// server that is known to be slow is not waited for, and one that turns out to be slow only for a
// moment: it has the request, or its lock ends with the ttl.
Result<void> RedisLease::release(Deadline deadline, Cancel cancel) {
  const Millis moment = node_timeout(request_.ttl) / 2;
  const Deadline until = single() ? deadline : std::min(deadline, after(Clock::now(), kReleasing));
  Deadline for_the_others = kNever;
  Answers answers(cluster_->size(), needed_);
  std::vector<unsigned> prompt;
  for (const unsigned node : cluster_->all()) {
    if (cluster_->is_prompt(node)) prompt.push_back(node);
  }
  answers.end = cluster_->gather<Removal>(
      cluster_->all(),
      // Behind a server that is slow, a thread may come to it when `until` is over: it is sent all
      // the same, or a grant that came late would stay.
      [request = request_, until, timeout = node_timeout(request_.ttl), single = single(), prompt,
       queue = is_queued_ ? std::optional(head_) : std::nullopt,
       outstanding = outstanding_](Node& node, unsigned number, Cancel stop) {
        const Deadline at_least = single ? Deadline() : after(Clock::now(), timeout);
        const bool is_prompt = std::find(prompt.begin(), prompt.end(), number) != prompt.end();
        const Removing how{.was_waiting = queue == number,
                           .in_doubt = (*outstanding)[number],
                           .unheard = !single && !is_prompt};
        return node.remove(request, how, std::max(until, at_least), stop);
      },
      [&](unsigned node, const Result<Removal>& answer) {
        std::erase(prompt, node);
        if (answer) {
          answers.put(node, answer.value().ours, answer.value().why, "none");
        } else {
          answers.put(node, answer.error());
        }
        return false;
      },
      [&] {
        if (!answers.tally.reached() && !answers.tally.out_of_reach()) return until;
        if (prompt.empty()) return Deadline();
        for_the_others = std::min(for_the_others, after(Clock::now(), moment));
        return std::min(deadline, for_the_others);
      },
      cancel);
  return verdict(answers);
}

Result<void> RedisLease::complete(const Completion& completion, Deadline deadline, Cancel cancel) {
  if (!single()) return Lease::complete(completion, deadline, cancel);
  const auto answer = cluster_->call<Completed>(
      0,
      [request = request_, mark = record_of({request_.key, completion.period}),
       text = format_mark(request_.owner, fence(), completion.remember),
       remember = completion.remember, deadline](Node& node, Cancel stop) {
        return node.complete(request, mark, text, remember, deadline, stop);
      },
      cancel);
  if (!answer) return answer.error();
  Answers answers(1, 1);
  answers.put(0, answer.value().done, answer.value().why, answer.value().found);
  return verdict(answers);
}

}  // namespace

std::unique_ptr<Lease> make_lease(std::shared_ptr<Cluster> cluster, Grant grant) {
  return std::make_unique<RedisLease>(std::move(cluster), std::move(grant));
}

}  // namespace dlock::redis
