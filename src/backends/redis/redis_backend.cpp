// redis is redlock with one server: the same code, and what several would have to agree on goes
// without a word.
#include "backends/redis/redis_backend.hpp"

#include "backends/redis/acquire.hpp"
#include "backends/redis/cluster.hpp"
#include "backends/redis/merge.hpp"
#include "backends/redis/quorum.hpp"
#include "backends/redis/record.hpp"
#include "backends/redis/redis_lease.hpp"
#include "backends/redis/redis_records.hpp"
#include "backends/redis/server_errors.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

constexpr Millis kStragglers{1'000};

class RedisBackend final : public Backend {
 public:
  RedisBackend(std::string location, const std::vector<Address>& addresses,
               const std::string& prefix)
      : location_(std::move(location)), cluster_(std::make_shared<Cluster>(addresses, prefix)) {
    for (const Address& address : addresses) servers_.push_back(address.shown);
    if (cluster_->size() == 1) records_ = make_records(cluster_->node(0));
  }

  std::string location() const override { return location_; }

  Result<std::unique_ptr<Lease>> acquire(const Request& request, const Wait& wait) override {
    return redis::acquire(cluster_, request, wait);
  }

  Result<std::vector<LockInfo>> list(std::string_view prefix, Deadline deadline) override {
    auto lists = of_each<std::vector<LockInfo>>(
        [prefix = std::string(prefix), deadline](Node& node, Cancel stop) {
          return node.list(prefix, deadline, stop);
        });
    return lists.size() == 1 ? std::move(lists[0]) : merge_lists(lists, servers_);
  }

  Result<LockInfo> inspect(std::string_view key, Deadline deadline) override {
    // A thread may still be connecting for a waiter.
    const Deadline until = after(Clock::now(), cluster_->address(0).patience);
    auto looks =
        of_each<LockInfo>([key = std::string(key), deadline](
                              Node& node, Cancel stop) { return node.look(key, deadline, stop); },
                          until);
    return looks.size() == 1 ? std::move(looks[0]) : merge_looks(key, looks, servers_);
  }

  Result<bool> force_release(std::string_view key, std::string_view owner_id, const Reason& reason,
                             Deadline deadline) override;

  Result<std::unique_ptr<Lease>> resume(const LockInfo& lock, const LockInfo::Holder& holder,
                                        Millis ttl, Deadline deadline) override;

  Records* records() override { return records_.get(); }

 private:
  // An operator wants to know of each server; but who is slow is not waited for much longer than
  // the majority took, nor after `until`.
  template <class Answer, class Ask>
  std::vector<Result<Answer>> of_each(Ask ask, Deadline until = kNever) {
    std::vector<Result<Answer>> out;
    for (const std::string& server : servers_) {
      out.emplace_back(Error{Errc::unreachable, server + ": no answer in time"});
    }
    unsigned answered = 0;
    cluster_->gather<Answer>(
        cluster_->all(), [ask](Node& node, unsigned, Cancel stop) { return ask(node, stop); },
        [&](unsigned node, Result<Answer>& answer) {
          out[node] = std::move(answer);
          if (++answered == quorum(cluster_->size())) {
            until = std::min(until, after(Clock::now(), kStragglers));
          }
          return false;
        },
        [&] { return until; }, Cancel());
    return out;
  }

  const std::string location_;
  const std::shared_ptr<Cluster> cluster_;  // the leases have it too: one connection for all
  std::vector<std::string> servers_;        // as they are shown
  std::unique_ptr<Records> records_;        // of a single server
};

// It is broken once so many servers do not have it any more that the others are no majority.
Result<bool> RedisBackend::force_release(std::string_view key, std::string_view owner_id,
                                         const Reason& reason, Deadline deadline) {
  if (owner_id.empty()) return false;
  const auto answers =
      of_each<bool>([call = break_call(cluster_->names(key), owner_id, format_reason(reason)),
                     deadline](Node& node, Cancel stop) -> Result<bool> {
        const auto reply = node.run(call, deadline, stop);
        if (!reply) return reply.error();
        return reply.value().number() == 1;
      });
  if (answers.size() == 1) return answers[0];
  const unsigned majority = quorum(cluster_->size());
  std::vector<std::optional<Error>> errors(cluster_->size());
  unsigned broken = 0;
  unsigned answered = 0;
  for (unsigned node = 0; node < cluster_->size(); ++node) {
    if (!answers[node]) {
      errors[node] = answers[node].error();
      continue;
    }
    ++answered;
    if (answers[node].value()) ++broken;
  }
  if (answered >= majority) return broken > 0;
  Error error = too_few(majority, errors);
  error.message = "broken on " + std::to_string(broken) + " of " +
                  std::to_string(cluster_->size()) + " servers only, so its holder may go on; " +
                  error.message;
  return error;
}

// Asks no server: inspect() has read all that a renewal or a release needs from the record.
Result<std::unique_ptr<Lease>> RedisBackend::resume(const LockInfo& lock,
                                                    const LockInfo::Holder& holder, Millis ttl,
                                                    Deadline) {
  const auto id = parse_grant_id(holder.owner.id);
  if (holder.foreign || !id || id->round == 0) {
    return Error{Errc::invalid, location_ + ": " + util::in_quotes(lock.key) +
                                    " was taken by another program, or its record is missing"};
  }
  // The majority of another list does not keep the clients of this one's out, nor the reverse.
  if (holder.servers != cluster_->list()) {
    return Error{Errc::invalid, location_ + ": " + util::in_quotes(lock.key) +
                                    " was taken by a client with another list of servers, or with "
                                    "other names for them: give the same list"};
  }
  // The acquirer has gone.  Nobody knows which servers had not answered it, and its request may
  // arrive there after the release.  A single server has answered all if that was the first.
  auto asked = std::make_shared<AskedOfEach>(cluster_->size());
  for (Asked& each : *asked) {
    each.is_sent = true;
    each.is_unanswered = cluster_->size() > 1 || id->round > 1;
  }
  const WaiterId waiter{.id = id->waiter,
                        .mode = mode_text(lock.mode, lock.slots),
                        .names = cluster_->names(lock.key)};
  return make_lease(cluster_, {.holder = {.waiter = waiter,
                                          .round = id->round,
                                          .queue_server = cluster_->ranked(0),
                                          .request = {.key = lock.key,
                                                      .mode = lock.mode,
                                                      .slots = lock.slots,
                                                      .ttl = ttl,
                                                      .owner = holder.owner},
                                          .asked = std::move(asked)},
                               .acquired_at = holder.acquired_at,
                               .token = holder.fence.value_or(0),
                               .number = holder.slot.value_or(0),
                               .asked_at = Clock::now() - holder.held.value_or(Millis{0}),
                               .valid_until = {},
                               .subscriptions = std::make_shared<Subscriptions>(cluster_->size())});
}

}  // namespace

Result<std::string> place(const Target& target) {
  auto found = place_of(target);
  if (!found) return found.error();
  return std::move(found->name);
}

Result<std::unique_ptr<Backend>> open(const Target& target, Deadline, Cancel) {
  auto place = place_of(target);
  if (!place) return place.error();
  if (const auto text = failover_advice(place->address)) {
    util::log(util::Level::warning, *text);
  }
  const std::vector<Address> addresses(1, place->address);
  return std::make_unique<RedisBackend>(place->location, addresses, place->prefix);
}

Result<std::string> place_redlock(const Target& target) {
  auto found = places_of(target);
  if (!found) return found.error();
  return std::move(found->name);
}

Result<std::unique_ptr<Backend>> open_redlock(const Target& target, Deadline, Cancel) {
  auto places = places_of(target);
  if (!places) return places.error();
  if (const auto text = advice(static_cast<unsigned>(places->addresses.size()))) {
    util::log(util::Level::warning, *text);
  }
  return std::make_unique<RedisBackend>(places->location, places->addresses, places->prefix);
}

}  // namespace dlock::redis
