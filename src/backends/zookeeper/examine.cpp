// Each server is asked over a session with it alone, and by four-letter words, over connections of
// their own.
#include "backends/zookeeper/examine.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <set>

#include "backends/zookeeper/zookeeper_records.hpp"
#include "core/checks.hpp"
#include "util/duration.hpp"
#include "util/host.hpp"
#include "util/text.hpp"

namespace dlock::zookeeper {
namespace {

using Look = std::optional<Seen>;

constexpr long long kUsualConnections = 60;
constexpr timeval kPatience{.tv_sec = 1, .tv_usec = 0};

// What is known of one server.
struct Facts {
  std::string server;
  std::shared_ptr<const Place> place;  // with this host alone
  Millis ttl{};
  std::optional<Error> error = {};
  util::Ends ends = {};
  RoundTrips round_trips = {};
  Millis granted{0};
  Told told = {};                         // by srvr, conf and /zookeeper/config
  std::vector<std::string> missing = {};  // nodes; what is above another one comes later
  std::string origin = {};  // which transaction made our nodes; no other ensemble has the same
  std::size_t named = 0;    // servers in the URL; 0: another one tells of the ensemble

  std::string client() const {
    return "zkCli.sh -server " + util::in_shell(shown(place->hosts[0]));
  }
  bool has_chroot() const {
    return place->chroot.empty() || std::ranges::count(missing, place->chroot) == 0;
  }
  // The servers of the ensemble that vote, as "host:2888:3888"; one that is alone, as "host:2181".
  std::vector<std::string> voters() const {
    std::vector<std::string> out;
    for (const auto& [name, value] : told.values()) {
      if (!name.starts_with("server.") || value.find(":observer") != std::string::npos) continue;
      out.push_back(util::clipped(value, 100));
    }
    if (out.empty() && told("Mode") == "standalone") {
      out.push_back(ends.there + ':' + std::to_string(place->hosts[0].port));
    }
    return out;
  }
};

Look server(const Facts& facts) {
  const std::string version = facts.told("Zookeeper version");
  const std::string address = ", address " + facts.ends.there;
  if (version.empty()) return Seen{"may not ask srvr for the version" + address, Severity::note};
  return Seen{version.substr(0, version.find_first_of("-,")) + ", " + facts.told("Mode") + address};
}

Look chroot(const Facts& facts) {
  if (facts.has_chroot()) return std::nullopt;
  const std::string& path = facts.place->chroot;
  std::string creates;
  for (std::size_t end = 0; end < path.size();) {  // each part of the path, those above it first
    end = std::min(path.find('/', end + 1), path.size());
    creates += (creates.empty() ? "" : "; ") + ("{} create " + util::in_shell(path.substr(0, end)));
  }
  return Seen{"no node " + util::printable(path), Severity::fail, creates};
}

Look round_trip(const Facts& facts) { return facts.round_trips.seen(facts.ttl); }

Look timeout(const Facts& facts) {
  const std::string ttl = util::format_duration(facts.ttl);
  if (facts.granted == facts.ttl) return Seen{"a TTL of " + ttl};
  const std::string granted = util::format_duration(facts.granted);
  return Seen{"asked for " + ttl + ", got " + granted, Severity::warn,
              (facts.granted < facts.ttl ? "maxSessionTimeout=" : "minSessionTimeout=") +
                  std::to_string(facts.ttl.count()) +
                  "    # in zoo.cfg of each server, then restart it; or accept --ttl " + granted};
}

Look connections(const Facts& facts) {
  const auto most = util::parse_int(facts.told("maxClientCnxns"), 1, INT32_MAX);
  if (!most) return std::nullopt;  // not known, or there is no limit
  return Seen{
      "maxClientCnxns " + std::to_string(*most) + "; all clients have " + facts.told("Connections"),
      *most < kUsualConnections ? Severity::warn : Severity::ok};
}

Look tls(const Facts& facts) {
  if (!facts.ends.leaves_machine()) return std::nullopt;
  return Seen{"no TLS", Severity::note};
}

Look user(const Facts& facts) {
  const std::string& auth = facts.place->auth;
  if (facts.named == 0) return std::nullopt;
  if (auth.empty()) return Seen{"none", Severity::note};
  return Seen{util::clipped(auth.substr(0, auth.find(':')), 100)};
}

Look ensemble(const Facts& facts) {
  const std::size_t count = facts.voters().size();
  if (facts.named == 0 || count == 0) return std::nullopt;
  return Seen{std::to_string(count) + (count == 1 ? " server" : " servers"),
              count % 2 == 0 || count == 1 ? Severity::warn : Severity::ok};
}

Look same_machine(const Facts& facts) {
  std::set<std::string> hosts;
  for (const std::string& voter : facts.voters()) {
    const std::string host = voter.substr(0, voter.find(':', voter.find(']') + 1));
    if (facts.named == 0 || hosts.insert(host).second) continue;
    return Seen{"two servers are on " + host, Severity::warn};
  }
  return std::nullopt;
}

Look url(const Facts& facts) {
  const std::size_t count = facts.voters().size();
  if (facts.named == 0 || facts.named >= count) return std::nullopt;
  return Seen{"names " + std::to_string(facts.named) + " of " + std::to_string(count) + " servers",
              Severity::note};
}

constexpr std::array kChecks{
    Check<Facts>{"zookeeper-server", server, "Some of what follows cannot be told without it.",
                 "4lw.commands.whitelist=srvr,conf    # in zoo.cfg of each server"},
    Check<Facts>{"zookeeper-chroot", chroot, "dlock does not create the path of the URL."},
    Check<Facts>{"zookeeper-round-trip", round_trip, kWhySlow, "use a longer --ttl"},
    Check<Facts>{
        "zookeeper-timeout", timeout,
        "A job ends after a shorter outage than you asked for, or its lock outlives it for "
        "longer."},
    Check<Facts>{"zookeeper-connections", connections,
                 "Each holder and each waiter of a machine needs a connection.",
                 "maxClientCnxns=500    # in zoo.cfg of each server"},
    Check<Facts>{"zookeeper-tls", tls,
                 "dlock has no TLS for ZooKeeper: password and locks can be read on their way.",
                 "use a private network, or a tunnel"},
    Check<Facts>{"zookeeper-user", user, "Everybody who reaches the servers can break locks.",
                 "?auth_file=/FILE in the URL of all jobs: man dlock-zookeeper"},
    Check<Facts>{"zookeeper-ensemble", ensemble,
                 "One server has no spare; of an even number, one is of no use.",
                 "run 3 or 5 servers"},
    Check<Facts>{"zookeeper-machines", same_machine,
                 "If that machine fails, more than one server fails with it.",
                 "run the servers on machines that fail independently"},
    Check<Facts>{"zookeeper-url", url, "If these servers fail, jobs do not find the others.",
                 "name all servers in the URL"},
};

// What the server at the other end of `session` says to a four-letter word; "" if nothing.
std::string ask_word(int session, std::string_view word) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  auto* const address = reinterpret_cast<sockaddr*>(&peer);
  if (::getpeername(session, address, &size) != 0) return "";
  const Fd fd(::socket(peer.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  if (::connect(fd.get(), address, size) != 0) return "";
  ::send(fd.get(), word.data(), word.size(), MSG_NOSIGNAL);
  std::array<char, 16'384> text{};
  const ssize_t got = ::recv(fd.get(), text.data(), text.size(), MSG_WAITALL);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

// The nodes that dlock makes where they are missing; what is above another one comes later.
std::vector<std::string> nodes_of(const Place& place) {
  const std::string base = place.base() + '/';
  std::vector<std::string> out{marks_clock(place), base + std::string(kDone),
                               base + std::string(kBroken)};
  for (std::string path = place.base(); path.size() > place.chroot.size();
       path.resize(path.rfind('/')))
    out.push_back(path);
  return out;
}

// The root is made by none; what is below it has changed by one.
std::string origin_of(const Stat& node) {
  return node.czxid == 0 ? "below " + std::to_string(node.pzxid)
                         : std::to_string(node.czxid) + " at " + std::to_string(node.ctime);
}

Result<void> ask_all(Facts& facts, Deadline deadline, Cancel cancel) {
  const Place& place = *facts.place;
  Session session(facts.place, facts.ttl);
  if (auto ok = session.open(deadline, cancel); !ok) return ok;
  facts.granted = session.timeout();
  facts.ends = util::ends_of(session.fd());
  auto measured = facts.round_trips.measure(deadline, [&]() -> Result<void> {
    const auto proved = session.persist(
        [&] { return std::array{prove(session.handle(), place.chroot_node())}; }, deadline, cancel);
    return proved ? Result<void>() : proved.error();
  });
  if (!measured) return measured;
  std::vector<std::string> nodes = nodes_of(place);
  nodes.push_back(place.chroot_node());
  const auto answers = session.persist(
      [&] {
        std::vector<Call> calls{get(session.handle(), "/zookeeper/config", Watch::no)};
        for (const std::string& node : nodes)
          calls.push_back(exists(session.handle(), node, Watch::no));
        return calls;
      },
      deadline, cancel);
  if (!answers) return answers.error();
  const auto& calls = answers.value();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Reply& node = *calls[i + 1];
    if (node.code == ZNONODE) facts.missing.push_back(nodes[i]);
    const bool is_ours = place.base().starts_with(nodes[i]);
    if (facts.origin.empty() && node.ok() && is_ours) facts.origin = origin_of(node.stat);
  }
  for (const char* word : {"conf", "srvr"})
    facts.told.add_lines(ask_word(session.fd(), word), ":=");
  facts.told.add_lines(calls[0]->text, ":=");
  const bool is_alone = calls[0]->ok() && calls[0]->text.empty() && facts.told("Mode").empty();
  if (is_alone) facts.told.add("Mode", "standalone");
  session.close();
  return {};
}

class ZookeeperExamination final : public Examination {
 public:
  ZookeeperExamination(const Target& target, Place place, Millis ttl)
      : target_(target), place_(std::make_shared<Place>(std::move(place))), ttl_(ttl) {}

  Findings look(Deadline deadline, Cancel cancel) override;
  bool may_try() const override { return may_try_; }
  std::optional<Millis> granted_ttl() const override { return granted_; }
  std::string rights() const override {
    return "the user needs the rights crdw on the nodes: setAcl in zkCli.sh, man dlock-zookeeper";
  }
  Result<void> remove_traces(std::string_view key, std::span<const std::string> owners,
                             Deadline deadline) override;

 private:
  const Target target_;
  const std::shared_ptr<const Place> place_;
  const Millis ttl_;
  bool may_try_ = false;
  std::optional<Millis> granted_;
  std::vector<std::string> missing_;
};

Findings ZookeeperExamination::look(Deadline deadline, Cancel cancel) {
  auto servers = look_at_each(place_->hosts, [&](const HostPort& host) {
    Target target = target_;
    if (place_->hosts.size() > 1) target.url.hosts = {host};
    auto place = std::make_shared<Place>(std::move(*place_of(target)));
    Facts facts{place->shown, place, ttl_};
    if (auto ok = ask_all(facts, deadline, cancel); !ok) facts.error = ok.error();
    return facts;
  });
  const auto first = std::ranges::find_if(servers, [](const Facts& facts) { return !facts.error; });
  if (first != servers.end()) {
    first->named = servers.size();
    missing_ = first->missing;
    granted_ = first->granted;
    may_try_ = first->has_chroot();
  }
  Findings out;
  check_each<Facts>(kChecks, servers, "zookeeper-connect",
                    "zkServer.sh status    # on that machine; host and port: man dlock-zookeeper",
                    first != servers.end(), out);
  for (const Facts& facts : servers) {
    if (facts.error) continue;
    if (facts.origin == first->origin) continue;
    out.push_back({"zookeeper-ensembles", Severity::fail, facts.server,
                   "belongs to another ensemble than " + first->server,
                   "Each ensemble grants the same lock, and two jobs run at once.",
                   "name the servers of one ensemble in the URL"});
  }
  return out;
}

// What is not empty is somebody else's, too.
Result<void> ZookeeperExamination::remove_traces(std::string_view key,
                                                 std::span<const std::string> owners,
                                                 Deadline deadline) {
  Session session(place_, ttl_);
  if (auto ok = session.open(deadline, Cancel()); !ok) return ok;
  const std::string base = place_->base() + '/';
  std::vector<std::string> nodes{
      place_->path_of(key), base + std::string(kDone) + '/' + mark_node({std::string(key), ""})};
  for (const std::string& owner : owners)
    nodes.push_back(base + std::string(kBroken) + '/' + node_of(owner));
  nodes.insert(nodes.end(), missing_.begin(), missing_.end());
  const auto answers = session.persist(
      [&] {
        std::vector<Call> calls;
        for (const std::string& node : nodes) calls.push_back(remove(session.handle(), node, -1));
        return calls;
      },
      deadline, Cancel());
  session.close();
  if (!answers) return answers.error();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Call& call = answers.value()[i];
    if (call->ok() || call->code == ZNONODE || call->code == ZNOTEMPTY) continue;
    return session.refused(call, "delete " + nodes[i]);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Examination>> examine(const Target& target, Millis ttl) {
  auto place = place_of(target);
  if (!place) return place.error();
  return std::make_unique<ZookeeperExamination>(target, std::move(*place), ttl);
}

}  // namespace dlock::zookeeper
