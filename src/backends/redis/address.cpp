#include "backends/redis/address.hpp"

#include <algorithm>
#include <set>

#include "backends/redis/names.hpp"
#include "backends/redis/sentinel.hpp"
#include "backends/redis/url_forms.hpp"
#include "core/spelling.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

constexpr std::size_t kLongestPrefix = 200;

Error invalid(std::string message) { return {Errc::invalid, std::move(message)}; }

unsigned number_of(std::string_view text) {
  return static_cast<unsigned>(util::parse_int(text, 0, INT32_MAX).value_or(0));
}

// rediss://host?cacert=/etc/ssl/ca.pem&cert=/etc/ssl/job.pem&key=/etc/ssl/job.key
Result<void> take_tls(Url& url, Address& address) {
  if (auto ok = check_tls(); !ok) return ok;
  TlsFiles& files = address.tls.emplace();
  files = {.cacert = url.query["cacert"], .cert = url.query["cert"], .key = url.query["key"]};
  if (files.cert.empty() && !files.key.empty()) return invalid("a key in the URL without its cert");
  if (files.key.empty()) files.key = files.cert;
  for (const char* name : kTlsParameters) url.query.erase(name);
  return {};
}

// /mymaster, or /mymaster/2
Result<void> take_master(Url& url, Sentinels& sentinels, Address& address) {
  const std::string_view path =
      std::string_view(url.path).substr(std::min<std::size_t>(url.path.size(), 1));
  const auto slash = std::min(path.find('/'), path.size());
  sentinels.master = path.substr(0, slash);
  const std::string_view number = path.substr(std::min(slash + 1, path.size()));
  const auto database = util::parse_int(number.empty() ? "0" : number, 0, INT32_MAX);
  if (sentinels.master.empty() || util::has_control(sentinels.master) || !database) {
    return invalid(
        "the path of the URL must be the name of the master, and may end with a database: "
        "redis+sentinel://s1,s2,s3/mymaster/2");
  }
  address.database = static_cast<unsigned>(*database);
  address.shown = sentinels.shown();
  url.path = '/' + sentinels.master + '/' + std::to_string(address.database);
  return {};
}

// The sentinels get what is theirs of the URL, and nothing of what the master wants to know.
Result<void> take_sentinels(Url& url, Address& address, const std::string& password) {
  auto sentinels = std::make_shared<Sentinels>();
  if (auto ok = take_master(url, *sentinels, address); !ok) return ok;
  if (const auto& replicas = url.query["wait_replicas"]; !replicas.empty()) {
    sentinels->replicas = number_of(replicas);
  }
  const std::string user = url.query["sentinel_user"];
  if (!user.empty() && password.empty()) {
    return invalid("sentinel_user in the URL without sentinel_password_file");
  }
  std::set<std::string> known;
  for (const HostPort& host : url.hosts) {
    if (!known.insert(shown(canonical(host))).second) {
      return invalid("sentinel " + util::printable(shown(host)) +
                     " stands twice; each counts once");
    }
    sentinels->each.push_back({.host = host,
                               .user = user,
                               .password = password,
                               .tls = address.tls,
                               .patience = address.patience,
                               .shown = "sentinel " + util::printable(shown(host)),
                               .password_option = "?sentinel_password_file= in the URL"});
  }
  address.sentinels = std::move(sentinels);
  url.query.clear();
  return {};
}

// Leaves in `url` what is to be shown of it.
Result<Address> take_address(Url& url, const Target& target) {
  auto completed = complete_url(url, kUrlForms);
  if (!completed) return completed.error();
  url = std::move(*completed);
  Address address{.user = url.user, .password = url.password, .patience = target.connect_timeout};
  if (url.hosts.empty()) {
    address.socket = url.path;
    address.shown = "redis " + util::printable(url.path);
    if (url.query.contains("db")) address.database = number_of(url.query["db"]);
    return address;
  }
  if (find_form(kUrlForms, url.scheme)->tls) {
    if (auto ok = take_tls(url, address); !ok) return ok.error();
  }
  if (url.scheme.ends_with("+sentinel")) {
    if (auto ok = take_sentinels(url, address, target.auth); !ok) return ok.error();
    return address;
  }
  address.host = url.hosts[0];
  address.shown = "redis " + util::printable(shown(address.host));
  address.database = number_of(std::string_view(url.path).substr(1));
  url.path = '/' + std::to_string(address.database);
  return address;
}

Result<std::string> prefix_of(const Target& target) {
  std::string prefix = target.prefix.value_or(std::string(kDefaultPrefix));
  if (prefix.size() <= kLongestPrefix) return prefix;
  return invalid("the prefix is longer than " + std::to_string(kLongestPrefix) + " bytes");
}

// --- several servers

// A URL for each, as if it had been given so.
std::vector<Url> servers_of(const Target& target) {
  const Url& shared = target.url;
  std::vector<Url> servers = target.servers;
  for (const HostPort& host : shared.hosts) {
    Url& server = servers.emplace_back(Url{.scheme = "redis"});
    server.hosts.push_back(host);
  }
  for (Url& server : servers) {
    const bool names_nobody = server.user.empty() && server.password.empty();
    if (names_nobody) server.user = shared.user;
    if (server.password.empty()) server.password = shared.password;
    if (shared.path.size() < 2) continue;
    if (server.scheme == "redis+unix") {
      server.query.emplace("db", shared.path.substr(1));
    } else if (server.path.size() < 2) {
      server.path = shared.path;
    }
  }
  return servers;
}

// The same for two URLs of one server, whatever they say of how to get in and of its databases.
std::string identity(const Address& address) {
  return address.socket.empty() ? shown(canonical(address.host)) : canonical_path(address.socket);
}

std::string database_of(const Address& address) { return std::to_string(address.database); }

// redlock://h1:6379,h2:6379/0, or with the database of each where they differ.
std::string location_of(const std::vector<Address>& addresses) {
  const bool alike = std::all_of(addresses.begin(), addresses.end(), [&](const Address& it) {
    return it.socket.empty() && it.database == addresses[0].database;
  });
  std::string out = "redlock://";
  for (const Address& address : addresses) {
    if (&address != &addresses[0]) out += ',';
    if (address.socket.empty()) {
      out += util::printable(shown(address.host)) + (alike ? "" : '/' + database_of(address));
    } else {
      out += "redis+unix://" + util::printable(address.socket);
      if (address.database != 0) out += "?db=" + database_of(address);
    }
  }
  return out + (alike ? '/' + database_of(addresses[0]) : "");
}

// redis://h1:6379/0, redis:///run/redis.sock?db=2, redis+sentinel://s1:26379,s2:26379/mymaster/0
std::string name_of(const Address& address) {
  if (address.sentinels) {
    std::vector<HostPort> hosts;
    for (const Address& sentinel : address.sentinels->each) hosts.push_back(sentinel.host);
    return "redis+sentinel://" + canonical_list(hosts) + '/' + address.sentinels->master + '/' +
           database_of(address);
  }
  const std::string out = "redis://" + identity(address);
  if (address.socket.empty()) return out + '/' + database_of(address);
  return address.database == 0 ? out : out + "?db=" + database_of(address);
}

std::string name_of(std::vector<Address> addresses) {
  for (Address& address : addresses) {
    address.host = canonical(address.host);
    if (!address.socket.empty()) address.socket = canonical_path(address.socket);
  }
  std::sort(addresses.begin(), addresses.end(),
            [](const Address& one, const Address& two) { return identity(one) < identity(two); });
  return location_of(addresses);
}

// 1 server, 2 servers
std::string count_of(unsigned servers) {
  return std::to_string(servers) + (servers == 1 ? " server" : " servers");
}

}  // namespace

Result<Place> place_of(const Target& target) {
  auto prefix = prefix_of(target);
  if (!prefix) return prefix.error();
  Url url = target.url;
  auto address = take_address(url, target);
  if (!address) return address.error();
  std::string name = name_of(*address);
  return Place{std::move(*address), std::move(*prefix), url.redacted(), std::move(name)};
}

Result<Places> places_of(const Target& target) {
  auto prefix = prefix_of(target);
  if (!prefix) return prefix.error();
  if (auto ok = complete_url(target.url, kRedlockUrlForms); !ok) return ok.error();
  std::vector<Url> servers = servers_of(target);
  if (servers.empty()) {
    return invalid(
        "which servers? redlock has no default; name them with --server h1,h2,h3 or as "
        "redlock://h1,h2,h3");
  }
  if (servers.size() > kMostServers) {  // of URLs of their own
    return invalid(std::to_string(servers.size()) + " servers are too many; the most is " +
                   std::to_string(kMostServers));
  }
  Places places{.prefix = std::move(*prefix)};
  std::set<std::string> known;
  for (Url& server : servers) {
    auto address = take_address(server, target);
    if (!address) {
      const std::size_t number = places.addresses.size() + 1;
      return invalid("server " + std::to_string(number) + " of " + std::to_string(servers.size()) +
                     ": " + address.error().message);
    }
    if (address->sentinels) {
      return invalid(address->shown +
                     ": redlock needs independent masters, and sentinels move one");
    }
    if (!known.insert(identity(*address)).second) {
      return invalid(address->shown +
                     " stands twice; each server counts once, whatever its database");
    }
    places.addresses.push_back(std::move(*address));
  }
  places.location = location_of(places.addresses);
  places.name = name_of(places.addresses);
  return places;
}

std::string redis_cli(const Address& address) {
  std::string out = "redis-cli ";
  out += address.socket.empty() ? "-h " + util::in_shell(address.host.host) + " -p " +
                                      std::to_string(address.host.port)
                                : "-s " + util::in_shell(address.socket);
  if (!address.user.empty()) out += " --user default";
  if (!address.password.empty()) out += " --askpass";
  if (!address.tls) return out;
  const auto& [cacert, cert, key] = *address.tls;
  out += " --tls";
  if (!cacert.empty()) out += " --cacert " + util::in_shell(cacert);
  if (!cert.empty()) out += " --cert " + util::in_shell(cert) + " --key " + util::in_shell(key);
  return out;
}

std::optional<std::string> failover_advice(const Address& address) {
  if (!address.sentinels || address.sentinels->replicas) return std::nullopt;
  return address.shown +
         ": a failover can lose a lock that no replica has yet, and then two jobs run at once; "
         "?wait_replicas=1 in the URL waits for one, ?wait_replicas=0 accepts that "
         "(man dlock-redis)";
}

std::optional<std::string> advice(unsigned servers) {
  if (servers == 0 || (servers > 1 && servers % 2 == 1)) return std::nullopt;
  const unsigned spare = (servers - 1) / 2;
  std::string out = count_of(servers) + (servers == 1 ? " survives" : " survive") +
                    " the failure of " + (spare == 0 ? "none" : std::to_string(spare));
  if (servers > 1) out += ", as " + std::to_string(servers - 1) + (servers == 2 ? " does" : " do");
  return out + "; redlock is for an odd number of them, 3 or more";
}

}  // namespace dlock::redis
