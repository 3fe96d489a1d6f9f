#include "backends/redis/requests.hpp"

#include <algorithm>
#include <utility>

#include "backends/redis/quorum.hpp"
#include "backends/redis/record.hpp"
#include "util/host.hpp"

namespace dlock::redis {

constexpr Millis kToSubscribe{1'000};  // more of the time is for the question

// One order, and all that it needs: it may outlive the waiter.
class Requests::Task {
 public:
  Task(const Requests& its, const Order& order, Deadline until)
      : order_(order),
        until_(until),
        acquired_at_(its.acquired_at_),
        seen_(its.seen_),
        number_(its.cluster_->number(order.server)),
        number_text_(its.cluster_->number_text(order.server)),
        its_(its.its_) {}

  Answer operator()(Node& node, unsigned, Cancel stop) const { return {order_, run(node, stop)}; }

 private:
  using Kind = Order::Kind;

  bool is_single() const { return !number_; }
  Asked& asked() const { return (*its_->asked)[order_.server]; }
  Deadline answer_until() const {
    return is_single() ? until_ : after(Clock::now(), answer_within(its_->request.ttl));
  }

  Result<Reply> run(Node& node, Cancel stop) const {
    const bool is_question = order_.kind == Kind::ask || order_.kind == Kind::vote;
    if (!is_question && !asked().is_sent) return not_asked(node);
    const Deadline connected = is_single() ? until_ : after(Clock::now(), node.address().patience);
    if (is_unwanted()) return not_asked(node);
    if (auto ok = node.connect(connected, stop); !ok) return ok.error();
    its_->subscriptions->drop_unless_at(order_.server, node.address().host);
    if (order_.kind == Kind::ask && order_.join) {
      if (auto ok = subscribe(node, stop); !ok) return ok.error();
    }
    if (is_unwanted()) return not_asked(node);
    if (!is_question) return node.run(call(), answer_until(), stop, asked().is_unanswered);
    auto reply =
        ask_and_note(asked(), node, [&] { return node.run(call(), answer_until(), stop); });
    if (!reply || !is_single() || ask_answer(*reply).kind != AskAnswer::Kind::granted) return reply;
    if (auto ok = node.replicated(answer_until(), stop); !ok) return ok.error();
    return reply;
  }

  bool is_unwanted() const {
    if (order_.kind == Kind::undo) return order_.round < asked().undone;
    return order_.kind != Kind::leave_queue && order_.round <= asked().undone;
  }
  static Error not_asked(const Node& node) {
    return {Errc::cancelled, node.address().shown + ": not asked"};
  }

  // Before it joins the queue: a waiter that does not listen counts as dead.  Where a server takes
  // no subscription, or does not answer, as behind some proxies, another one may, and it is not
  // tried again for half a minute; if none does, they are asked twice a second.  A right that is
  // missing can be given.
  Result<void> subscribe(Node& node, Cancel stop) const {
    using State = Subscriptions::State;
    const unsigned server = order_.server;
    const bool is_missing = its_->subscriptions->at(server) == State::missing;
    if (is_missing && !its_->subscriptions->has_failed_lately(server)) {
      (void)its_->subscriptions->subscribe(server, node.address(),
                                           its_->waiter.names.channels + its_->waiter.id,
                                           after(Clock::now(), kToSubscribe), stop);
    }
    const auto trouble = its_->subscriptions->trouble(server);
    if (!trouble) return {};
    if (!its_->subscriptions->all_have_trouble()) return not_asked(node);
    const bool may_ask = its_->subscriptions->at(server) == State::subscribed ||
                         trouble->code == Errc::unsupported || trouble->code == Errc::unreachable;
    return may_ask ? Result<void>() : *trouble;
  }

  std::string record(std::uint64_t token, unsigned number) const {
    Record out{.owner = its_->request.owner,
               .mode = its_->request.mode,
               .slots = its_->request.slots,
               .acquired_at = acquired_at_,
               .ttl = its_->request.ttl,
               .servers = its_->servers,
               .node = number_};
    out.owner.id = its_->waiter.grant_id(order_.round);
    if (token > 0) out.fence = token;
    if (number > 0) out.slot = number;
    return format_record(out);
  }

  ScriptCall call() const {
    switch (order_.kind) {
      case Kind::ask: {
        const auto waited =
            std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - its_->came);
        return redis::call(
            its_->waiter, order_.round,
            Ask{.ttl = its_->request.ttl,
                .record = record(0, 0),
                .join = order_.join,
                .waited = waited,
                .server = number_text_,
                .seen = seen_,
                .polls = order_.join && its_->subscriptions->trouble(order_.server)});
      }
      case Kind::vote:
        return redis::call(its_->waiter, order_.round,
                           VoteRequest{.ttl = its_->request.ttl,
                                       .record = record(order_.token, order_.number),
                                       .token = order_.token,
                                       .number = order_.number,
                                       .server = number_text_});
      case Kind::undo:
        return redis::call(its_->waiter, order_.round, Leave{.quiet = order_.quiet});
      case Kind::leave_queue:
        break;
    }
    return redis::call(its_->waiter, 0, Leave{.final = true});
  }

  const Order order_;
  const Deadline until_;
  const std::string acquired_at_;
  const std::string seen_;
  const std::optional<unsigned> number_;  // of the server; none if it is the only one
  const std::string number_text_;
  const std::shared_ptr<const Asker> its_;
};

Requests::Requests(std::shared_ptr<Cluster> cluster, const Request& request, WaiterId waiter,
                   Deadline came, std::shared_ptr<Subscriptions> subscriptions, Cancel cancel)
    : cluster_(std::move(cluster)),
      its_(
          std::make_shared<Asker>(Asker{.request = request,
                                        .waiter = std::move(waiter),
                                        .came = came,
                                        .servers = cluster_->list(),
                                        .subscriptions = std::move(subscriptions),
                                        .asked = std::make_shared<AskedOfEach>(cluster_->size())})),
      answers_(*cluster_, cancel) {}

void Requests::send(const Order& order, Deadline until) {
  if (order.kind == Order::Kind::undo) {
    std::atomic<unsigned>& undone = (*its_->asked)[order.server].undone;
    undone = std::max(undone.load(), order.round);
  }
  if (order.round > round_) acquired_at_ = util::utc_now();
  round_ = std::max(round_, order.round);
  answers_.ask(order.server, Task(*this, order, until));
}

std::optional<Requests::Answer> Requests::take() {
  auto answer = answers_.take();
  if (!answer) return std::nullopt;
  return std::move(answer->second);
}

}  // namespace dlock::redis
