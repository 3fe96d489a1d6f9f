#include "backends/redis/address.hpp"

#include <algorithm>
#include <set>

#include "backends/redis/names.hpp"
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
  url.query.clear();  // how we get there is no part of where the locks are
  return {};
}

// Leaves in `url` what is to be shown of it.
Result<Address> take_address(Url& url, Millis patience) {
  auto completed = complete_url(url, kUrlForms);
  if (!completed) return completed.error();
  url = std::move(*completed);
  Address address{.user = url.user, .password = url.password, .patience = patience};
  if (url.hosts.empty()) {
    address.socket = url.path;
    address.shown = "redis " + util::printable(url.path);
    if (url.query.contains("db")) address.database = number_of(url.query["db"]);
    return address;
  }
  if (find_form(kUrlForms, url.scheme)->tls) {
    if (auto ok = take_tls(url, address); !ok) return ok.error();
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
