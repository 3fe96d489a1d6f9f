#include "backends/redis/examine.hpp"

#include <algorithm>
#include <array>
#include <future>
#include <iterator>
#include <map>
#include <set>

#include "backends/redis/connection.hpp"
#include "backends/redis/examine_sentinels.hpp"
#include "backends/redis/names.hpp"
#include "backends/redis/quorum.hpp"
#include "backends/redis/sentinel.hpp"
#include "core/checks.hpp"
#include "util/duration.hpp"
#include "util/host.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

// What is known of one server.
struct Facts {
  std::string server;
  std::string host;  // the address that its name leads to; "" for a unix socket
  Address address;   // as it was reached
  bool is_one_of_several = false;
  Millis ttl{};
  Told told, set;  // by INFO and CONFIG GET, as far as allowed
  RoundTrips round_trips;
  Millis ahead{0};
  std::optional<int> certificate_days;
  bool is_open = false;  // also to a client without user and password
  std::optional<Error> error;

  std::string client() const { return redis_cli(address); }
  std::string user() const {
    return util::in_shell(address.user.empty() ? "default" : address.user);
  }
  bool is_local() const { return host.empty() || host.starts_with("127.") || host == "::1"; }
};

using Look = std::optional<Seen>;

Look version(const Facts& facts) {
  if (facts.told.empty()) return std::nullopt;
  const std::string version = facts.told("redis_version");
  const std::string user = facts.address.user.empty() ? "default" : facts.address.user;
  const bool is_old = util::parse_int(version.substr(0, version.find('.')), 0, 4).has_value();
  return Seen{"version " + version + ", user " + util::clipped(user, 100) +
                  (facts.host.empty() ? "" : ", address " + facts.host),
              is_old ? Severity::warn : Severity::ok};
}

Look rights(const Facts& facts) {
  if (!facts.told.empty() && !facts.set.empty()) return std::nullopt;
  return Seen{std::string("may not ask ") + (facts.told.empty() ? "INFO" : "CONFIG GET") +
                  ", so not all of what follows is looked at",
              Severity::note,
              "{} ACL SETUSER " + facts.user() +
                  " +info '+config|get'    # or run dlock doctor as an admin"};
}

Look round_trip(const Facts& facts) { return facts.round_trips.seen(facts.ttl); }

Look clock(const Facts& facts) { return clock_seen(facts.ahead); }

Look tls(const Facts& facts) {
  if (facts.certificate_days) return certificate_seen(*facts.certificate_days);
  if (facts.is_local() || facts.address.tls) return std::nullopt;
  return Seen{"no TLS", Severity::note};
}

Look password(const Facts& facts) {
  if (!facts.is_open || !facts.address.socket.empty()) return std::nullopt;
  return Seen{"no password is needed", facts.is_local() ? Severity::note : Severity::warn};
}

Look eviction(const Facts& facts) {
  const std::string policy = facts.told("maxmemory_policy");
  if (policy.empty()) return std::nullopt;
  const bool is_limited = facts.told("maxmemory") != "0";
  return Seen{"maxmemory-policy " + policy + (is_limited ? "" : ", and no maxmemory"),
              policy == "noeviction" ? Severity::ok
              : is_limited           ? Severity::fail
                                     : Severity::note};
}

Look persistence(const Facts& facts) {
  if (facts.told("aof_enabled") == "1") {
    const std::string fsync = facts.set("appendfsync");
    return Seen{"appendonly yes, appendfsync " + (fsync.empty() ? "not known" : fsync),
                fsync == "always" ? Severity::ok : Severity::note};
  }
  if (facts.set.empty()) return std::nullopt;
  return Seen{facts.set("save").empty() ? "nothing is saved to disk" : "snapshots only (save)",
              Severity::warn};
}

Look role(const Facts& facts) {
  if (facts.told.empty()) return std::nullopt;
  if (facts.told("role") == "master") return Seen{"master"};
  return Seen{"a replica of " + facts.told("master_host") + ':' + facts.told("master_port"),
              Severity::fail};
}

Look replicas(const Facts& facts) {
  const std::string count = facts.told("connected_slaves");
  if (count.empty() || (count == "0" && !facts.address.sentinels)) return std::nullopt;
  const std::string seen = count + (count == "1" ? " replica" : " replicas");
  if (!facts.address.sentinels) return Seen{seen, Severity::warn};
  const unsigned wanted = facts.address.sentinels->replicas.value_or(0);
  const auto there = util::parse_int(count, 0, UINT32_MAX).value_or(0);
  if (there == 0) return Seen{seen, Severity::warn, "start a replica, or no failover is possible"};
  return Seen{seen + ", wait_replicas=" + std::to_string(wanted),
              wanted == 0      ? Severity::warn
              : wanted < there ? Severity::note
                               : Severity::ok,
              "with ?wait_replicas=" + count +
                  " in the URL, a failover loses nothing; or have "
                  "DLOCK_FENCE checked by what the job writes to"};
}

// What its sentinels have replaced may not know that yet.
Look split(const Facts& facts) {
  const std::string least = facts.set("min-replicas-to-write");
  if (!facts.address.sentinels || least.empty()) return std::nullopt;
  return Seen{"min-replicas-to-write " + least, least == "0" ? Severity::warn : Severity::ok};
}

Look uptime(const Facts& facts) {
  const auto seconds = util::parse_int(facts.told("uptime_in_seconds"), 0, INT32_MAX);
  if (!seconds || !facts.is_one_of_several) return std::nullopt;
  const Millis up{*seconds * 1'000};
  const bool may_have_forgotten = up < facts.ttl && facts.set("appendfsync") != "always";
  return Seen{*seconds == 0 ? "started just now" : "up for " + util::format_duration(up),
              may_have_forgotten ? Severity::warn : Severity::ok};
}

constexpr std::array kChecks{
    Check<Facts>{"redis-server", version, "dlock needs Redis 5 or later.",
                 "use a newer server; see dlock backends"},
    Check<Facts>{"redis-rights", rights,
                 "What can lose a lock on this server stays unknown: eviction, persistence, "
                 "replicas.",
                 ""},
    Check<Facts>{"redis-round-trip", round_trip, kWhySlow, "{} --latency"},
    Check<Facts>{"redis-clock", clock, kWhyClock, kFixClock},
    Check<Facts>{"redis-tls", tls, "The password and the locks can be read on their way.",
                 "use rediss://, with a certificate that lasts: man dlock-redis"},
    Check<Facts>{"redis-password", password, "Everybody who reaches the port can break all locks.",
                 "create a user with a password: man dlock-redis, SET-UP"},
    Check<Facts>{"redis-role", role,
                 "Locks on a replica exclude nobody; and a replica takes no writes.",
                 "name its master in the URL"},
    Check<Facts>{"redis-eviction", eviction,
                 "A server that is out of memory deletes locks, and two jobs run at once.",
                 "{} CONFIG SET maxmemory-policy noeviction    # and in redis.conf"},
    Check<Facts>{
        "redis-persistence", persistence,
        "A restart of the server forgets locks, which others then acquire, and done-marks, so "
        "dlock "
        "once runs a job again.",
        "{} CONFIG SET appendonly yes; {} CONFIG SET appendfsync always    # and in redis.conf"},
    Check<Facts>{"redis-replicas", replicas,
                 "Replicas lag: in a failover the new master may not have the latest locks, and "
                 "two jobs run at once.",
                 "use redlock with 3 servers that have no replicas, or have DLOCK_FENCE checked by "
                 "what the job writes to"},
    Check<Facts>{
        "redis-split", split,
        "A master that is cut off from its sentinels goes on granting locks, which the "
        "new master grants, too.",
        "{} CONFIG SET min-replicas-to-write 1; {} CONFIG SET min-replicas-max-lag 10    # "
        "and in redis.conf"},
    Check<Facts>{"redis-uptime", uptime,
                 "A server that has forgotten its locks counts as one that has none.",
                 "keep a server of redlock down for a TTL, or set appendfsync always"},
};

// How far the server's TIME is ahead of ours, which was asked for `took`.
std::optional<Millis> ahead(const Reply& time, Clock::duration took) {
  const auto seconds = util::parse_int(time.at(0).text, 0, INT32_MAX);
  const auto micros = util::parse_int(time.at(1).text, 0, 999'999);
  if (!seconds || !micros) return std::nullopt;
  const auto now = std::chrono::system_clock::now() - took / 2;
  return Millis{*seconds * 1'000 + *micros / 1'000} -
         std::chrono::duration_cast<Millis>(now.time_since_epoch());
}

Result<void> ask_all(Connection& connection, Facts& facts, Deadline deadline, Cancel cancel) {
  if (auto ok = connection.connect(deadline, cancel); !ok) return ok;
  facts.host = util::ends_of(connection.fd()).there;
  facts.address = connection.address();
  facts.certificate_days = connection.certificate_days();
  auto measured = facts.round_trips.measure(deadline, [&]() -> Result<void> {
    const Deadline start = Clock::now();
    const auto time = connection.ask(Command{"TIME"}, deadline, cancel);
    if (!time) return time.error();
    if (time.value().is_error()) return server_error(facts.address, time.value().text);
    const Clock::duration took = Clock::now() - start;
    if (facts.round_trips.is_fastest(took)) {
      facts.ahead = ahead(time.value(), took).value_or(Millis{0});
    }
    return {};
  });
  if (!measured) return measured;
  const auto replies =
      connection.ask(std::vector<Command>{{"INFO"},
                                          {"CONFIG", "GET", "save"},
                                          {"CONFIG", "GET", "appendfsync"},
                                          {"CONFIG", "GET", "min-replicas-to-write"}},
                     deadline, cancel);
  if (!replies) return replies.error();
  for (const Reply& reply : replies.value()) {
    if (!reply.is_error()) facts.told.add_lines(reply.text, ":");
    if (reply.items.size() == 2) facts.set.add(reply.items[0].text, reply.items[1].text);
  }
  Address nobodys = facts.address;
  nobodys.sentinels = nullptr;
  nobodys.user.clear();
  nobodys.password.clear();
  if (nobodys.tls) nobodys.tls->cert = nobodys.tls->key = "";
  const auto answer = Connection(nobodys).ask(Command{"TIME"}, deadline, cancel);
  facts.is_open = answer && !answer.value().is_error();
  return {};
}

class RedisExamination final : public Examination {
 public:
  RedisExamination(std::vector<Address> addresses, std::string prefix, Millis ttl)
      : addresses_(std::move(addresses)), prefix_(std::move(prefix)), ttl_(ttl) {}

  Findings look(Deadline deadline, Cancel cancel) override;
  bool may_try() const override { return answered_.size() >= quorum(size()); }
  std::string rights() const override;
  Result<void> remove_traces(std::string_view key, std::span<const std::string> owners,
                             Deadline deadline) override;

 private:
  unsigned size() const { return static_cast<unsigned>(addresses_.size()); }
  void compare(std::span<const Facts> servers, Findings& out) const;

  const std::vector<Address> addresses_;
  const std::string prefix_;
  const Millis ttl_;
  std::vector<Address> answered_;
};

// As man dlock-redis has them.
std::string RedisExamination::rights() const {
  const Facts first{.address = answered_.empty() ? addresses_.front() : answered_.front()};
  const auto pattern = [](const std::string& text) { return ' ' + util::in_shell_quotes(text); };
  return first.client() + " ACL SETUSER " + first.user() + pattern('~' + prefix_ + '*') +
         pattern("~{" + prefix_ + '*') + pattern("&{" + prefix_ + '*') +
         " '&__redis__:invalidate' +eval +evalsha +get +set +del +incr +exists +type +time "
         "+pttl +pexpire +pexpireat +getrange +zadd +zcard +zrange +zrangebyscore +zrank +zrem "
         "+zscore +hget +hset +hdel +hexists +hlen +hscan +publish +subscribe "
         "'+pubsub|numsub' '+client|id' '+client|tracking' +scan +select '+config|get' +info" +
         (first.address.sentinels ? " +role +wait" : "") + "    # then CONFIG REWRITE or ACL SAVE";
}

Findings RedisExamination::look(Deadline deadline, Cancel cancel) {
  std::future<Findings> of_sentinels;
  if (const auto& sentinels = addresses_.front().sentinels) {
    of_sentinels = std::async(look_at_sentinels, std::cref(*sentinels), deadline, cancel);
  }
  const auto servers = look_at_each(addresses_, [&](const Address& address) {
    Facts facts{.address = address, .ttl = ttl_};
    facts.is_one_of_several = size() > 1;
    Connection connection(address);
    if (auto ok = ask_all(connection, facts, deadline, cancel); !ok) facts.error = ok.error();
    facts.server = connection.address().shown;
    return facts;
  });
  for (const Facts& facts : servers) {
    if (!facts.error && facts.told("role") != "slave") answered_.push_back(facts.address);
  }
  Findings out;
  check_each<Facts>(
      kChecks, servers, "redis-connect",
      "systemctl status redis-server    # on that machine; user and password: man dlock-redis",
      may_try(), out);
  if (size() > 1) compare(servers, out);
  if (of_sentinels.valid()) std::ranges::move(of_sentinels.get(), std::back_inserter(out));
  return out;
}

// What is wrong with several servers together.
void RedisExamination::compare(std::span<const Facts> servers, Findings& out) const {
  const auto text = advice(size());
  out.push_back({"redlock-number", text ? Severity::warn : Severity::ok, "",
                 text.value_or(std::to_string(size()) + " servers"),
                 text ? "One more server than an odd number adds a failure, and no safety." : "",
                 text ? "name 3 or 5 servers in the URL" : ""});
  std::map<std::string, std::string> hosts;
  for (const Facts& facts : servers) {
    const std::string run = facts.told("run_id");
    for (const std::string& id : {run.empty() ? "" : "run " + run, facts.host}) {
      if (id.empty()) continue;
      const auto [earlier, is_new] = hosts.emplace(id, facts.server);
      if (is_new) continue;
      const bool is_same = id.starts_with("run ");
      out.push_back(
          {is_same ? "redlock-same-server" : "redlock-same-machine", Severity::fail, facts.server,
           (is_same ? "the same server as " : "on the same machine as ") + earlier->second,
           is_same ? "It counts twice, so fewer servers than a majority grant a lock."
                   : "If that machine fails, more than one server fails with it.",
           is_same ? "name each server once, in servers or the URL"
                   : "name servers on machines that fail independently"});
      break;
    }
  }
}

Result<void> RedisExamination::remove_traces(std::string_view key,
                                             std::span<const std::string> owners,
                                             Deadline deadline) {
  const Names names = names_of(prefix_, key);
  Command command{"DEL",         names.lock,
                  names.counter, names.owner,
                  names.queue,   record_key(prefix_, {RecordKind::mark, std::string(key), ""})};
  for (const std::string& owner : owners) {
    command.push_back(names.revoked + owner);
    command.push_back(names.given_up + owner.substr(0, owner.find(':')));
  }
  const auto removed = look_at_each(answered_, [&](const Address& address) -> Result<void> {
    const auto reply = Connection(address).ask(command, deadline, Cancel());
    if (!reply) return reply.error();
    if (reply.value().is_error()) return server_error(address, reply.value().text);
    return {};
  });
  const auto failed = std::ranges::find_if(removed, [](const auto& one) { return !one; });
  return failed == removed.end() ? Result<void>() : *failed;
}

}  // namespace

Result<std::unique_ptr<Examination>> examine(const Target& target, Millis ttl) {
  auto place = place_of(target);
  if (!place) return place.error();
  return std::make_unique<RedisExamination>(std::vector<Address>(1, place->address), place->prefix,
                                            ttl);
}

Result<std::unique_ptr<Examination>> examine_redlock(const Target& target, Millis ttl) {
  auto places = places_of(target);
  if (!places) return places.error();
  return std::make_unique<RedisExamination>(places->addresses, places->prefix, ttl);
}

}  // namespace dlock::redis
