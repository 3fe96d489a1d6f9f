#include "backends/redis/address.hpp"

#include <algorithm>
#include <set>

#include "backends/redis/names.hpp"
#include "core/spelling.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

using util::in_quotes;

constexpr std::string_view kTlsScheme = "rediss";
constexpr std::uint16_t kPort = 6'379;
constexpr std::size_t kLongestPrefix = 200;
constexpr std::size_t kMostServers = 32;

Error invalid(std::string message) { return {Errc::invalid, std::move(message)}; }

Result<unsigned> parse_database(std::string_view text) {
  const auto number = util::parse_int(text, 0, INT32_MAX);
  if (number) return static_cast<unsigned>(*number);
  return invalid("bad database in the URL: must be a number, as in redis://host:6379/2");
}

// redis+unix:///path?db=2
Result<void> take_socket(Url& url, Address& address) {
  if (!url.hosts.empty()) return invalid("redis+unix:// takes a path and no host");
  if (url.path.size() < 2)
    return invalid("no path of a socket, as in redis+unix:///run/redis.sock");
  address.socket = url.path;
  address.shown = "redis " + util::printable(url.path);
  const auto db = url.query.find("db");
  if (db != url.query.end()) {
    auto number = parse_database(db->second);
    if (!number) return number.error();
    address.database = *number;
  }
  if (url.query.size() > (db == url.query.end() ? 0 : 1)) {
    return invalid("the query of a redis+unix:// URL may hold db only");
  }
  return {};
}

// rediss://host?cacert=/etc/ssl/ca.pem&cert=/etc/ssl/job.pem&key=/etc/ssl/job.key
Result<void> take_tls(Url& url, Address& address) {
  if (auto ok = check_tls(); !ok) return ok;
  TlsFiles& files = address.tls.emplace();
  for (const auto& [name, path] : url.query) {
    std::string* const file = name == "cacert" ? &files.cacert
                              : name == "cert" ? &files.cert
                              : name == "key"  ? &files.key
                                               : nullptr;
    if (file == nullptr) {
      return invalid("the query of a rediss:// URL may hold cacert, cert and key only");
    }
    if (!path.starts_with('/')) return invalid(name + " in the URL must be an absolute path");
    *file = path;
  }
  if (files.cert.empty() && !files.key.empty()) return invalid("a key in the URL without its cert");
  if (files.key.empty()) files.key = files.cert;
  url.query.clear();  // how we get there is no part of where the locks are
  return {};
}

// redis://host:6379/2
Result<void> take_host(Url& url, Address& address) {
  if (url.hosts.size() > 1) {
    return invalid("the redis backend takes one server; redlock takes several");
  }
  if (url.scheme == kTlsScheme) {
    if (auto ok = take_tls(url, address); !ok) return ok;
  }
  if (!url.query.empty()) {
    return invalid("a redis:// URL has no query; files for TLS go into that of a rediss:// URL");
  }
  if (url.hosts.empty()) url.hosts.push_back({"localhost", 0});
  if (url.hosts[0].port == 0) url.hosts[0].port = kPort;
  address.host = url.hosts[0];
  address.shown = "redis " + util::printable(shown(address.host));
  if (url.path.size() > 1) {
    auto number = parse_database(std::string_view(url.path).substr(1));
    if (!number) return number.error();
    address.database = *number;
  }
  url.path = '/' + std::to_string(address.database);
  return {};
}

// Leaves in `url` what is to be shown of it.
Result<Address> take_address(Url& url, Millis patience) {
  Address address;
  address.user = url.user;
  address.password = url.password;
  address.patience = patience;
  Result<void> taken;
  if (url.scheme == "redis+unix") {
    taken = take_socket(url, address);
  } else if (url.scheme.find('+') == std::string::npos) {
    taken = take_host(url, address);
  } else {
    taken = invalid(in_quotes(url.scheme) +
                    " is no way to reach redis; redis://, rediss:// and redis+unix:// are");
  }
  if (!taken) return taken.error();
  if (!address.user.empty() && address.password.empty()) {
    return invalid("a user without a password; give it in the URL or by --password-file");
  }
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

Result<void> check_shared(const Url& url) {
  if (url.scheme.find('+') != std::string::npos || !url.query.empty()) {
    return invalid(
        "a URL of redlock has hosts and a database only; if its servers need TLS or unix sockets, "
        "list a rediss:// or redis+unix:// URL for each with --server");
  }
  return {};
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

// redis://h1:6379/0, redis:///run/redis.sock?db=2
std::string name_of(const Address& address) {
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
  auto address = take_address(url, target.connect_timeout);
  if (!address) return address.error();
  std::string name = name_of(*address);
  return Place{std::move(*address), std::move(*prefix), url.redacted(), std::move(name)};
}

Result<Places> places_of(const Target& target) {
  auto prefix = prefix_of(target);
  if (!prefix) return prefix.error();
  if (auto ok = check_shared(target.url); !ok) return ok.error();
  std::vector<Url> servers = servers_of(target);
  if (servers.empty()) {
    return invalid(
        "which servers? redlock has no default; name them with --server h1,h2,h3 or as "
        "redlock://h1,h2,h3");
  }
  if (servers.size() > kMostServers) {
    return invalid(std::to_string(servers.size()) + " servers are too many; the most is " +
                   std::to_string(kMostServers));
  }
  Places places{.prefix = std::move(*prefix)};
  std::set<std::string> known;
  for (Url& server : servers) {
    auto address = take_address(server, target.connect_timeout);
    if (!address) {
      const std::size_t number = places.addresses.size() + 1;
      return invalid("server " + std::to_string(number) + " of " + std::to_string(servers.size()) +
                     ": " + address.error().message);
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

std::optional<std::string> advice(unsigned servers) {
  if (servers == 0 || (servers > 1 && servers % 2 == 1)) return std::nullopt;
  const unsigned spare = (servers - 1) / 2;
  std::string out = count_of(servers) + (servers == 1 ? " survives" : " survive") +
                    " the failure of " + (spare == 0 ? "none" : std::to_string(spare));
  if (servers > 1) out += ", as " + std::to_string(servers - 1) + (servers == 2 ? " does" : " do");
  return out + "; redlock is for an odd number of them, 3 or more";
}

}  // namespace dlock::redis
