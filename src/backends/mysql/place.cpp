#include "backends/mysql/place.hpp"

#include <sys/un.h>

#include <algorithm>
#include <utility>

#include "backends/mysql/url_forms.hpp"
#include "util/host.hpp"
#include "util/text.hpp"

namespace dlock::mysql {
namespace {

using util::in_quotes;

Error invalid(std::string message) { return {Errc::invalid, std::move(message)}; }

Result<std::string> prefix_of(const Target& target) {
  std::string prefix = target.prefix.value_or(std::string(sql::kDefaultPrefix));
  const bool plain = std::all_of(prefix.begin(), prefix.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (plain && prefix.size() <= sql::kLongestPrefix) return prefix;
  return invalid("bad prefix " + in_quotes(prefix) +
                 " for the names of tables: must be A-Z, a-z, 0-9 and _, at most " +
                 std::to_string(sql::kLongestPrefix) + " of them");
}

Result<void> take_parameters(const Url& url, Place& place) {
  const auto value_of = [&](const char* name) {
    const auto found = url.query.find(name);
    return found == url.query.end() ? std::string() : found->second;
  };
  place.socket = value_of("socket");
  place.ca = value_of("ca");
  place.cert = value_of("cert");
  place.key = value_of("key");
  const std::string tls = value_of("tls");
  place.tls = tls == "on"            ? Tls::on
              : tls == "verify"      ? Tls::verify
              : tls == "preferred"   ? Tls::preferred
              : tls == "off"         ? Tls::off
              : place.socket.empty() ? Tls::preferred
                                     : Tls::off;
  if (!place.socket.empty() && place.tls != Tls::off) {
    return invalid("tls over a unix socket protects nothing; leave it out");
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

// Others write localhost for a socket, too.
Result<void> check_socket(const Url& url, const std::string& socket) {
  if (!url.hosts.empty() && url.hosts != std::vector{HostPort{"localhost", 0}}) {
    return invalid("a URL with ?socket= has no host: " + url.scheme +
                   "://USER@/DATABASE?socket=/PATH");
  }
  constexpr std::size_t kLongest = sizeof sockaddr_un{}.sun_path - 1;
  if (socket.size() <= kLongest) return {};
  return invalid("the path of a socket cannot be longer than " + std::to_string(kLongest) +
                 " bytes");
}

}  // namespace

Result<Place> make_place(const Target& target) {
  Place place;
  const auto url = place.begin(target, kUrlForms);
  if (!url) return url.error();
  auto prefix = prefix_of(target);
  if (!prefix) return prefix.error();
  place.prefix = std::move(*prefix);
  if (place.user.empty()) place.user = util::user_name();
  if (auto ok = take_parameters(url.value(), place); !ok) return ok.error();
  if (!place.socket.empty()) {
    if (auto ok = check_socket(target.url, place.socket); !ok) return ok.error();
    place.hosts.emplace_back();
  }
  place.finish(url.value(), "mysql");
  return place;
}

}  // namespace dlock::mysql
