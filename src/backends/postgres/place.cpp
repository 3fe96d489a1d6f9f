#include "backends/postgres/place.hpp"

#include <algorithm>
#include <utility>

#include "backends/postgres/url_forms.hpp"
#include "core/spelling.hpp"
#include "util/host.hpp"
#include "util/text.hpp"

namespace dlock::postgres {
namespace {

using util::in_quotes;

constexpr std::size_t kLongestPrefix = 32;

Error invalid(std::string message) { return {Errc::invalid, std::move(message)}; }

// Names that need no quotes, which an operator would have to write.
Result<std::string> prefix_of(const Target& target) {
  std::string prefix = target.prefix.value_or(std::string(kDefaultPrefix));
  const bool plain = std::all_of(prefix.begin(), prefix.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  const bool begins_well = prefix.empty() || prefix.front() < '0' || prefix.front() > '9';
  if (plain && begins_well && prefix.size() <= kLongestPrefix) return prefix;
  return invalid("bad prefix " + in_quotes(prefix) +
                 " for the names of tables: must be a-z, 0-9 and _, at most " +
                 std::to_string(kLongestPrefix) + " of them, the first of them no digit");
}

Result<void> check_advisory(const Url& url, const std::string& word) {
  const auto is_number = [](std::string_view text, long long low, long long high) {
    return util::parse_int(text, low, high).has_value();
  };
  const auto comma = word.find(',');
  const bool are_two = comma != std::string::npos &&
                       is_number(word.substr(0, comma), INT32_MIN, INT32_MAX) &&
                       is_number(word.substr(comma + 1), INT32_MIN, INT32_MAX);
  if (word != "hash" && !are_two && !is_number(word, INT64_MIN, INT64_MAX)) {
    return invalid("pg_advisory in the URL must be a number, two numbers (4,2) or hash");
  }
  if (url.scheme == "postgres-row") return {};
  return invalid("pg_advisory in the URL is for postgres-row, which waits for other programs");
}

Result<void> take_parameters(const Url& url, Place& place) {
  const auto value_of = [&](const char* name) {
    const auto found = url.query.find(name);
    return found == url.query.end() ? std::string() : found->second;
  };
  place.socket = value_of("socket");
  place.sslmode = value_of("sslmode");
  place.sslrootcert = value_of("sslrootcert");
  place.sslcert = value_of("sslcert");
  place.sslkey = value_of("sslkey");
  place.has_pooler = value_of("pooler") == "session";
  place.advisory = value_of("pg_advisory");
  if (url.query.contains("pg_advisory")) {
    if (auto ok = check_advisory(url, place.advisory); !ok) return ok;
  }
  if (!place.socket.empty() && !place.sslmode.empty() && place.sslmode != "disable") {
    return invalid("TLS over a unix socket protects nothing; leave sslmode out");
  }
  if (!place.sslrootcert.empty() && !place.verifies()) {
    return invalid(
        "sslrootcert in the URL says whom to trust, and nobody asks without sslmode=verify-full");
  }
  if (place.sslcert.empty() != place.sslkey.empty()) {
    return invalid("sslcert and sslkey in the URL belong together; one is missing");
  }
  return {};
}

// /run/postgresql, or the socket itself: /run/postgresql/.s.PGSQL.5433.
Result<void> take_socket(const Url& url, Place& place) {
  constexpr std::string_view kFile = "/.s.PGSQL.";
  HostPort only{"", 5'432};
  if (!url.hosts.empty()) {
    if (url.hosts.size() > 1 || url.hosts.front().host != "localhost") {
      return invalid("a URL with ?socket= has no host: " + url.scheme +
                     "://USER@/DATABASE?socket=/DIRECTORY");
    }
    if (url.hosts.front().port != 0) only.port = url.hosts.front().port;
  }
  if (const auto at = place.socket.rfind(kFile); at != std::string::npos && at > 0) {
    const auto port =
        util::parse_int(std::string_view(place.socket).substr(at + kFile.size()), 1, 65'535);
    if (!port) return invalid("socket in the URL must be a directory, as /run/postgresql");
    only.port = static_cast<std::uint16_t>(*port);
    place.socket.resize(at);
  }
  place.hosts = {only};
  return {};
}

}  // namespace

std::string Place::shown_host(const HostPort& host) const {
  return "postgres " + util::printable(socket.empty()
                                           ? dlock::shown(host)
                                           : socket + "/.s.PGSQL." + std::to_string(host.port));
}

Result<Place> make_place(const Target& target) {
  const std::string_view scheme = target.url.scheme;
  const UrlForm* form = find_form(kUrlForms, scheme.substr(0, scheme.find('+')));
  const std::span<const UrlForm> all = kUrlForms;
  auto completed = complete_url(target.url, form != nullptr ? std::span(form, 1) : all);
  if (!completed) return completed.error();
  Url& url = *completed;
  Place place;
  auto prefix = prefix_of(target);
  if (!prefix) return prefix.error();
  place.prefix = std::move(*prefix);
  place.database = url.path.substr(1);
  if (auto ok = take_parameters(url, place); !ok) return ok.error();
  url.query.clear();  // how we get there is no part of where the locks are
  place.hosts = url.hosts;
  if (!place.socket.empty()) {
    if (auto ok = take_socket(target.url, place); !ok) return ok.error();
    url.hosts.clear();
    url.query.emplace("socket", place.socket + "/.s.PGSQL." + std::to_string(place.hosts[0].port));
    place.shown = place.shown_host(place.hosts[0]);
  } else {
    for (const HostPort& host : url.hosts) {
      place.shown +=
          (place.shown.empty() ? "postgres " : ",") + util::printable(dlock::shown(host));
    }
  }
  place.user = url.user;
  place.password = url.password;
  place.connect_timeout = target.connect_timeout;
  place.location = url.redacted();
  const std::string method = url.scheme == "postgres" ? "postgres-table" : url.scheme;
  place.name = method + "://" +
               (place.socket.empty()
                    ? canonical_list(place.hosts) + url.path
                    : url.path + "?socket=" + canonical_path(url.query.find("socket")->second));
  return place;
}

}  // namespace dlock::postgres
