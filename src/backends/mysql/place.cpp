#include "backends/mysql/place.hpp"

#include <sys/un.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/spelling.hpp"
#include "util/host.hpp"
#include "util/text.hpp"

namespace dlock::mysql {
namespace {

using util::in_quotes;

constexpr std::uint16_t kPort = 3'306;
constexpr std::size_t kMostServers = 32;
constexpr std::size_t kLongestPrefix = 32;
constexpr std::size_t kLongestDatabase = 64;  // of MySQL and MariaDB, in characters
constexpr std::string_view kDefaultPrefix = "dlock_";

Error invalid(std::string message) { return {Errc::invalid, std::move(message)}; }

Result<std::string> prefix_of(const Target& target) {
  std::string prefix = target.prefix.value_or(std::string(kDefaultPrefix));
  const bool plain = std::all_of(prefix.begin(), prefix.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (plain && prefix.size() <= kLongestPrefix) return prefix;
  return invalid("bad prefix " + in_quotes(prefix) +
                 " for the names of tables: must be A-Z, a-z, 0-9 and _, at most " +
                 std::to_string(kLongestPrefix) + " of them");
}

// mysql-table://host/app
Result<std::string> database_of(const Url& url) {
  std::string_view name = url.path;
  while (name.starts_with('/')) name.remove_prefix(1);
  while (name.ends_with('/')) name.remove_suffix(1);
  if (name.empty()) {
    return invalid("which database? name it in the URL, as in " + url.scheme +
                   "://user@host/database");
  }
  const auto length = std::count_if(name.begin(), name.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80;  // not in the middle of a character
  });
  if (name.find_first_of("/\\") != std::string_view::npos || name.ends_with(' ') ||
      !util::is_utf8(name) || util::has_control(name) ||
      static_cast<std::size_t>(length) > kLongestDatabase) {
    return invalid("the path of the URL is no name of a database, as in " + url.scheme +
                   "://user@host/database");
  }
  return std::string(name);
}

// Each taken out of `query`, which must be empty then.
Result<void> take_query(std::map<std::string, std::string>& query, Place& place) {
  const auto take = [&](const char* name) {
    const auto node = query.extract(name);
    return node.empty() ? std::string() : node.mapped();
  };
  for (const char* name : {"socket", "ca", "cert", "key"}) {
    const auto item = query.find(name);
    if (item != query.end() && !item->second.starts_with('/')) {
      return invalid(std::string(name) + " in the URL must be an absolute path");
    }
  }
  place.socket = take("socket");
  place.ca = take("ca");
  place.cert = take("cert");
  place.key = take("key");
  constexpr std::array<std::pair<const char*, Tls>, 4> kTls{
      {{"off", Tls::off}, {"preferred", Tls::preferred}, {"on", Tls::on}, {"verify", Tls::verify}}};
  place.tls = place.socket.empty() ? Tls::preferred : Tls::off;
  if (query.contains("tls")) {
    const std::string tls = take("tls");
    const auto* const known =
        std::find_if(kTls.begin(), kTls.end(), [&](const auto& one) { return one.first == tls; });
    if (known == kTls.end()) {
      return invalid("tls in the URL must be off, preferred, on or verify");
    }
    place.tls = known->second;
  }
  if (!query.empty()) {
    return invalid("the query of the URL may hold socket, tls, ca, cert and key only");
  }
  if (!place.ca.empty() && place.tls != Tls::verify) {
    return invalid("ca in the URL says whom to trust, and nobody asks without tls=verify");
  }
  if (place.cert.empty() != place.key.empty()) {
    return invalid("cert and key in the URL belong together; one is missing");
  }
  if (!place.cert.empty() && !needs_tls(place.tls)) {
    return invalid("cert in the URL is for TLS only; say tls=on or tls=verify, too");
  }
  return {};
}

Result<void> take_socket(const Url& url, Place& place) {
  if (!url.hosts.empty()) return invalid("both a host and a socket in the URL; one must go");
  if (place.tls != Tls::off)
    return invalid("tls over a unix socket protects nothing; leave it out");
  constexpr std::size_t kLongest = sizeof sockaddr_un{}.sun_path - 1;
  if (place.socket.size() > kLongest) {
    return invalid("the path of a socket cannot be longer than " + std::to_string(kLongest) +
                   " bytes");
  }
  place.hosts.emplace_back();
  return {};
}

}  // namespace

std::string Place::shown_host(const HostPort& host) const {
  return "mysql " + util::printable(socket.empty() ? dlock::shown(host) : socket);
}

Result<Place> make_place(const Target& target) {
  Url url = target.url;
  if (url.scheme.find('+') != std::string::npos) {
    const std::string scheme = url.scheme.substr(0, url.scheme.find('+'));
    return invalid(in_quotes(url.scheme) + " is no way to reach mysql; " + scheme +
                   "://host/database and " + scheme + ":///database?socket=/path are");
  }
  Place place;
  auto prefix = prefix_of(target);
  if (!prefix) return prefix.error();
  place.prefix = std::move(*prefix);
  auto database = database_of(url);
  if (!database) return database.error();
  place.database = std::move(*database);
  if (auto ok = take_query(url.query, place); !ok) return ok.error();
  if (!place.socket.empty()) {
    if (auto ok = take_socket(url, place); !ok) return ok.error();
    url.query.emplace("socket", place.socket);
    place.shown = place.shown_host({});
  } else {
    if (url.hosts.empty()) url.hosts.push_back({"localhost", 0});
    if (url.hosts.size() > kMostServers) {
      return invalid(std::to_string(url.hosts.size()) + " servers are too many; the most is " +
                     std::to_string(kMostServers));
    }
    for (HostPort& host : url.hosts) {
      if (host.port == 0) host.port = kPort;
      place.shown += (place.shown.empty() ? "mysql " : ",") + util::printable(dlock::shown(host));
    }
    place.hosts = url.hosts;
  }
  place.user = url.user.empty() ? util::user_name() : url.user;
  place.password = url.password;
  place.connect_timeout = target.connect_timeout;
  url.path = '/' + place.database;
  place.location = url.redacted();
  place.name = place.socket.empty()
                   ? url.scheme + "://" + canonical_list(place.hosts) + url.path
                   : url.scheme + "://" + url.path + "?socket=" + canonical_path(place.socket);
  return place;
}

}  // namespace dlock::mysql
