#include "backends/redis/address.hpp"

#include "backends/redis/names.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

using util::quoted;

constexpr std::string_view kTlsScheme = "rediss";
constexpr std::uint16_t kPort = 6'379;
constexpr std::size_t kLongestPrefix = 200;

Error invalid(std::string message) { return {Errc::invalid, std::move(message)}; }

Result<unsigned> parse_database(std::string_view text) {
  const auto number = util::parse_int(text, 0, INT32_MAX);
  if (number) return static_cast<unsigned>(*number);
  return invalid("bad database " + quoted(text) + ": must be a number, as in redis://host:6379/2");
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
  for (const auto& [name, value] : url.query) {
    if (name != "db") return invalid(quoted(name) + " in the URL means nothing to redis");
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
      return invalid(quoted(name) + " in the URL means nothing to redis; cacert, cert and key do");
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
    return invalid(quoted(url.query.begin()->first) + " in the URL means nothing to redis");
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

}  // namespace

Result<Place> place_of(const Target& target) {
  Place place;
  place.prefix = target.prefix.value_or(std::string(kDefaultPrefix));
  if (place.prefix.size() > kLongestPrefix) {
    return invalid("the prefix is longer than " + std::to_string(kLongestPrefix) + " bytes");
  }
  Url url = target.url;
  Address& address = place.address;
  address.user = url.user;
  address.password = url.password;
  address.patience = target.connect_timeout;
  Result<void> taken;
  if (url.scheme == "redis+unix") {
    taken = take_socket(url, address);
  } else if (url.scheme.find('+') == std::string::npos) {
    taken = take_host(url, address);
  } else {
    taken = invalid(quoted(url.scheme) +
                    " is no way to reach redis; redis://, rediss:// and redis+unix:// are");
  }
  if (!taken) return taken.error();
  if (!address.user.empty() && address.password.empty()) {
    return invalid("a user without a password; give it in the URL or by --password-file");
  }
  place.location = url.redacted();
  return place;
}

}  // namespace dlock::redis
