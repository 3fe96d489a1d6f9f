#include "backends/redis/subscription.hpp"

#include <algorithm>

#include "backends/redis/sentinel.hpp"
#include "util/exchange.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

constexpr const char* kInvalidate = "__redis__:invalidate";
constexpr std::size_t kMostShown = 60;
constexpr Millis kToAnswer{1'000};  // who is not called asks
// At once.  A server that sends faster than dlock reads must not keep it here.
constexpr unsigned kMostReads = 16;

// For -vv.
std::string described(const Reply& push) {
  if (push.at(1).text != kInvalidate) return util::in_quotes(push.at(2).text, kMostShown);
  const auto& keys = push.at(2).items;
  if (keys.empty()) return "all keys have changed";
  return util::in_quotes(keys.front().text, kMostShown) + " has changed" +
         (keys.size() > 1 ? ", and " + std::to_string(keys.size() - 1) + " more" : "");
}

}  // namespace

Result<std::unique_ptr<Subscription>> Subscription::open(const Address& address,
                                                         const std::string& channel,
                                                         Deadline deadline, Cancel cancel) {
  std::unique_ptr<Subscription> out(new Subscription(address));
  // Once it is subscribed it can tell its id no more, nor try what calls it.
  const std::vector<Command> commands{{"CLIENT", "ID"},
                                      {"PUBLISH", channel, ""},
                                      {"SUBSCRIBE", channel},
                                      {"SUBSCRIBE", kInvalidate}};
  if (auto ok = out->connection_.connect(deadline, cancel); !ok) return ok.error();
  deadline = std::min(deadline, after(Clock::now(), kToAnswer));
  const auto replies = out->connection_.ask(commands, deadline, cancel);
  if (!replies && replies.error().code == Errc::unreachable) {
    return Error{Errc::unreachable,
                 address.shown + ": CLIENT, PUBLISH or SUBSCRIBE was not answered"};
  }
  if (!replies) return replies.error();
  const Reply& published = replies.value()[1];
  if (published.is_error()) out->nobody_calls_ = server_error(address, published.text);
  if (auto ok = out->began(replies.value()[2]); !ok) return ok.error();
  if (!replies.value()[3].is_error()) out->redirect_id_ = replies.value()[0].number();
  return out;
}

Result<std::unique_ptr<Subscription>> Subscription::to_sentinel(const Address& address,
                                                                Deadline deadline, Cancel cancel) {
  std::unique_ptr<Subscription> out(new Subscription(address));
  const auto reply = out->connection_.ask(Command{"SUBSCRIBE", kSwitchMaster}, deadline, cancel);
  if (!reply) return reply.error();
  if (auto ok = out->began(reply.value()); !ok) return ok.error();
  return out;
}

// By the reply to SUBSCRIBE.
Result<void> Subscription::began(const Reply& reply) {
  if (reply.is_error()) return server_error(connection_.address(), reply.text);
  if (!reply.is("*$$:")) return connection_.unexpected_reply();
  return {};
}

Result<std::vector<std::string>> Subscription::read() {
  std::vector<std::string> out;
  for (unsigned reads = kMostReads;;) {
    auto reply = connection_.receive_now(reads);
    if (!reply) return reply.error();
    if (!reply->has_value()) return out;
    const Reply& push = **reply;
    if (!push.is("*$$")) return connection_.unexpected_reply();
    if (push.at(0).text != "message") continue;
    if (util::exchanges_shown()) {
      util::log_exchange(connection_.address().shown, "message", described(push), std::nullopt);
    }
    const auto& keys = push.at(2).items;
    if (keys.empty()) out.push_back(push.at(2).text);
    for (const Reply& key : keys) out.push_back(key.text);
  }
}

}  // namespace dlock::redis
