#include "backends/redis/examine_sentinels.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "backends/redis/connection.hpp"
#include "core/checks.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

// What is known of one sentinel.
struct SentinelFacts {
  std::string server;
  const Address* address;
  std::string master;  // "mymaster is 10.0.0.7:6379"
  Reply quorum;
  std::optional<Error> error;
  std::string client() const { return redis_cli(*address); }
};

std::optional<Seen> master_seen(const SentinelFacts& facts) { return Seen{facts.master}; }

// "OK 3 usable Sentinels. ...", "NOQUORUM 1 usable Sentinels. ..."
std::optional<Seen> quorum_seen(const SentinelFacts& facts) {
  return Seen{util::clipped(facts.quorum.text, 100),
              facts.quorum.is_error() ? Severity::warn : Severity::ok};
}

constexpr std::array kSentinelChecks{
    Check<SentinelFacts>{"sentinel-master", master_seen},
    Check<SentinelFacts>{"sentinel-quorum", quorum_seen,
                         "If the master fails, no other takes its place.",
                         "have 3 sentinels or more that reach each other"}};

}  // namespace

Findings look_at_sentinels(const Sentinels& sentinels, Deadline deadline, Cancel cancel) {
  const auto found = look_at_each(sentinels.each, [&](const Address& address) {
    SentinelFacts facts{.server = address.shown, .address = &address};
    Sentinels alone;
    alone.master = sentinels.master;
    alone.each = {address};
    auto host = find_master(alone, deadline, cancel);
    auto checked = Connection(address).ask(Command{"SENTINEL", "CKQUORUM", sentinels.master},
                                           deadline, cancel);
    if (!host || !checked) {
      facts.error = host ? checked.error() : host.error();
      return facts;
    }
    facts.master = sentinels.master + " is " + shown(*host);
    facts.quorum = std::move(*checked);
    return facts;
  });
  const auto answered =
      std::ranges::count_if(found, [](const SentinelFacts& it) { return !it.error; });
  Findings out;
  check_each<SentinelFacts>(
      kSentinelChecks, found, "sentinel-connect",
      "systemctl status redis-sentinel    # on that machine; user and password: man "
      "dlock-redis",
      answered > 0, out);
  return out;
}

}  // namespace dlock::redis
