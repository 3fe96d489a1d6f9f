#include "backends/postgres/place.hpp"

#include <algorithm>
#include <utility>

#include "backends/postgres/url_forms.hpp"
#include "util/text.hpp"

namespace dlock::postgres {
namespace {

using util::in_quotes;

Error invalid(std::string message) { return {Errc::invalid, std::move(message)}; }

// Names that need no quotes, which an operator would have to write.
Result<std::string> prefix_of(const Target& target) {
  std::string prefix = target.prefix.value_or(std::string(sql::kDefaultPrefix));
  const bool plain = std::all_of(prefix.begin(), prefix.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  const bool begins_well = prefix.empty() || prefix.front() < '0' || prefix.front() > '9';
  if (plain && begins_well && prefix.size() <= sql::kLongestPrefix) return prefix;
  return invalid("bad prefix " + in_quotes(prefix) +
                 " for the names of tables: must be a-z, 0-9 and _, at most " +
                 std::to_string(sql::kLongestPrefix) + " of them, the first of them no digit");
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
  place.directory = place.socket;
  if (const auto at = place.socket.rfind(kFile); at != std::string::npos && at > 0) {
    const auto port =
        util::parse_int(std::string_view(place.socket).substr(at + kFile.size()), 1, 65'535);
    if (!port) return invalid("socket in the URL must be a directory, as /run/postgresql");
    only.port = static_cast<std::uint16_t>(*port);
    place.directory.resize(at);
  }
  place.socket = place.directory + std::string(kFile) + std::to_string(only.port);
  place.hosts = {only};
  return {};
}

}  // namespace

Result<Place> make_place(const Target& target) {
  Place place;
  const auto url = place.begin(target, kUrlForms);
  if (!url) return url.error();
  auto prefix = prefix_of(target);
  if (!prefix) return prefix.error();
  place.prefix = std::move(*prefix);
  if (auto ok = take_parameters(url.value(), place); !ok) return ok.error();
  if (!place.socket.empty()) {
    if (auto ok = take_socket(target.url, place); !ok) return ok.error();
  }
  place.finish(url.value(), "postgres");
  return place;
}

}  // namespace dlock::postgres
