#include "backends/zookeeper/place.hpp"

#include "core/spelling.hpp"
#include "util/text.hpp"

namespace dlock::zookeeper {
namespace {

using util::in_quotes;

constexpr std::uint16_t kPort = 2'181;
constexpr std::size_t kLongestPath = 500;
constexpr std::size_t kMostServers = 32;
constexpr std::string_view kDefaultRoot = "/dlock";
constexpr const char* kOnlyWay = ": dlock reaches ZooKeeper by zookeeper:// only, without TLS";

Error invalid(std::string message) { return {Errc::invalid, std::move(message)}; }

// "" for "/" and "", else "/a/b".  `shown` is what it is called in messages.
Result<std::string> node_path(std::string_view text, const std::string& shown) {
  while (text.ends_with('/')) text.remove_suffix(1);
  if (text.empty()) return std::string();
  if (!text.starts_with('/')) return invalid(shown + " must begin with a /, as in /dlock");
  if (text.size() > kLongestPath) return invalid(shown + " is too long");
  if (!util::is_utf8(text) || util::has_control(text)) {
    return invalid(shown + " holds a control character or invalid UTF-8");
  }
  for (std::string_view rest = text; !rest.empty();) {
    rest.remove_prefix(1);
    const std::string_view part = rest.substr(0, rest.find('/'));
    if (part.empty() || part == "." || part == "..") {
      return invalid(shown + " is no path of a node");
    }
    rest.remove_prefix(part.size());
  }
  if ((std::string(text) + '/').starts_with("/zookeeper/")) {
    return invalid(shown + ": /zookeeper belongs to the servers");
  }
  return std::string(text);
}

Result<std::string> auth_of(const Target& target) {
  const Url& url = target.url;
  if (url.user.empty() && url.password.empty()) {
    if (target.zk_auth.empty() || target.zk_auth.find(':') != std::string::npos) {
      return target.zk_auth;
    }
    return invalid("the file of --zk-auth-file must hold USER:PASSWORD");
  }
  if (!target.zk_auth.empty()) {
    return invalid("a user in the URL, or a password, beside --zk-auth-file; one of them must go");
  }
  if (url.user.empty()) return invalid("a password without a user; say zookeeper://USER@HOST");
  if (url.password.empty()) {
    return invalid(
        "a user without a password; give it by --password-file, or both by "
        "--zk-auth-file");
  }
  return url.user + ':' + url.password;
}

}  // namespace

Result<Place> place_of(const Target& target) {
  Url url = target.url;
  if (url.scheme != "zookeeper") {
    return invalid(in_quotes(url.scheme) + " is no way to reach zookeeper" + kOnlyWay);
  }
  if (!url.query.empty()) return invalid(std::string("the URL has options") + kOnlyWay);
  if (url.hosts.empty()) url.hosts.push_back({"localhost", 0});
  if (url.hosts.size() > kMostServers) {
    return invalid(std::to_string(url.hosts.size()) + " servers are too many; the most is " +
                   std::to_string(kMostServers));
  }
  Place place;
  for (HostPort& host : url.hosts) {
    if (host.port == 0) host.port = kPort;
    place.shown += (place.shown.empty() ? "zookeeper " : ",") + util::printable(shown(host));
  }
  place.hosts = url.hosts;
  auto chroot = node_path(url.path, "the path of the URL");
  if (!chroot) return chroot.error();
  const std::string prefix = target.prefix.value_or(std::string(kDefaultRoot));
  auto root = node_path(prefix, "the prefix " + in_quotes(prefix));
  if (!root) return root.error();
  const auto style = parse_style(target.zk_style);
  if (!style) return invalid("unknown style " + in_quotes(target.zk_style));
  auto auth = auth_of(target);
  if (!auth) return auth.error();
  place.chroot = std::move(*chroot);
  place.root = std::move(*root);
  place.style = *style;
  place.auth = std::move(*auth);
  place.patience = target.connect_timeout;
  url.path = place.chroot;
  place.location = url.redacted();
  place.name = "zookeeper://" + canonical_list(place.hosts) + place.chroot;
  return place;
}

Error no_chroot(const Place& place) {
  return {Errc::invalid, place.shown + ": there is no node " + util::printable(place.chroot) +
                             ", which the URL names; dlock does not create it"};
}

}  // namespace dlock::zookeeper
