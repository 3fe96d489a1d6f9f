#include "backends/zookeeper/place.hpp"

#include "backends/zookeeper/url_forms.hpp"
#include "core/spelling.hpp"
#include "util/text.hpp"

namespace dlock::zookeeper {
namespace {

using util::in_quotes;

constexpr std::size_t kLongestPath = 500;
constexpr std::string_view kDefaultRoot = "/dlock";

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
    if (target.auth.empty() || target.auth.find(':') != std::string::npos) return target.auth;
    return invalid("the file of ?auth_file= must hold USER:PASSWORD");
  }
  if (target.auth.empty()) return url.user + ':' + url.password;
  return invalid("a user in the URL, or a password, beside ?auth_file=; one of them must go");
}

}  // namespace

Result<Place> place_of(const Target& target) {
  auto completed = complete_url(target.url, kUrlForms);
  if (!completed) return completed.error();
  Url& url = *completed;
  Place place;
  for (const HostPort& host : url.hosts) {
    place.shown += (place.shown.empty() ? "zookeeper " : ",") + util::printable(shown(host));
  }
  place.hosts = url.hosts;
  auto chroot = node_path(url.path, "the path of the URL");
  if (!chroot) return chroot.error();
  const std::string prefix = target.prefix.value_or(std::string(kDefaultRoot));
  auto root = node_path(prefix, "the prefix " + in_quotes(prefix));
  if (!root) return root.error();
  auto auth = auth_of(target);
  if (!auth) return auth.error();
  place.chroot = std::move(*chroot);
  place.root = std::move(*root);
  if (const auto style = url.query.find("style"); style != url.query.end()) {
    place.style = *parse_style(style->second);
  }
  place.auth = std::move(*auth);
  place.patience = target.connect_timeout;
  url.path = place.chroot;
  url.query.clear();  // how we get there is no part of where the locks are
  place.location = url.redacted();
  place.name = "zookeeper://" + canonical_list(place.hosts) + place.chroot;
  return place;
}

Error no_chroot(const Place& place) {
  return {Errc::invalid, place.shown + ": there is no node " + util::printable(place.chroot) +
                             ", which the URL names; dlock does not create it"};
}

}  // namespace dlock::zookeeper
