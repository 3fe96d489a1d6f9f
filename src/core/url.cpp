#include "core/url.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <optional>

#include "util/text.hpp"

namespace dlock {
namespace {

using util::is_utf8;
using util::parse_int;
using util::percent_decode;
using util::percent_encode;
using util::printable;

Error invalid(std::string message) { return {Errc::invalid, std::move(message)}; }

// Splits off and returns what stands before `mark`; all of `text` if `mark` is not in it.
std::string_view take_until(std::string_view& text, char mark) {
  const auto at = text.find(mark);
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return head;
}

std::optional<std::string> decoded(std::string_view text) {
  auto out = percent_decode(text);
  if (!out || !is_utf8(*out) || out->find('\0') != std::string::npos) return std::nullopt;
  return out;
}

// user[:password]@ ; the last @ ends it, so that a password may hold one.
Result<void> take_user(std::string_view& authority, Url& url) {
  const auto at = authority.rfind('@');
  if (at == std::string_view::npos) return {};
  std::string_view password = authority.substr(0, at);
  authority.remove_prefix(at + 1);
  // h1's password would be sent to h2, with the rest of the list behind it.
  const auto other = password.find('@');
  if (other != std::string_view::npos && password.find(',', other) != std::string_view::npos) {
    return invalid(
        "a URL has one user for all its hosts; in a password an @ is written %40, a comma %2C");
  }
  const auto user = decoded(take_until(password, ':'));
  const auto secret = decoded(password);
  if (!user || !secret) return invalid("bad %-escape before the @ of the URL");
  if (secret->empty() && user->find(':') != std::string::npos) {
    return invalid("the : between user and password of the URL is not written %3A");
  }
  url.user = *user;
  url.password = *secret;
  return {};
}

Result<void> take_query(std::string_view query, Url& url) {
  while (!query.empty()) {
    std::string_view value = take_until(query, '&');
    const auto name = decoded(take_until(value, '='));
    const auto text = decoded(value);
    if (!name || !text || name->empty()) return invalid("bad query in the URL");
    if (!url.query.emplace(*name, *text).second) {
      return invalid("a name stands twice in the query of the URL");
    }
  }
  return {};
}

// Other bytes are those of names in other scripts, which some resolvers take.
bool is_name(std::string_view host) {
  return std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c >= 0x80;
  });
}

// The ? in front of it may stand in a password, which ends at an @.  It does not if an @ is part of
// the path of a file: ?tls=verify&ca=/home/me@site/ca.pem
bool may_be_query(std::string_view text) {
  if (text.find('@') == std::string_view::npos) return true;
  while (!text.empty()) {
    std::string_view value = take_until(text, '&');
    const bool named = is_name(take_until(value, '='));
    if (!named || (value.find('@') != std::string_view::npos && !value.starts_with('/'))) {
      return false;
    }
  }
  return true;
}

// fe80::1%eth0
bool is_ipv6(const std::string& host) {
  const auto scope = std::min(host.find('%'), host.size());
  in6_addr address{};
  return inet_pton(AF_INET6, host.substr(0, scope).c_str(), &address) == 1 &&
         (scope == host.size() || is_name(std::string_view(host).substr(scope + 1)));
}

// `where` is what it is a part of, for messages.
Result<HostPort> host_of(std::string_view text, const std::string& where) {
  HostPort out;
  std::string_view port;
  bool has_port = false;
  const bool is_address = text.starts_with('[') || std::count(text.begin(), text.end(), ':') > 1;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return invalid("a [ without a ] in " + where);
    out.host = text.substr(1, close - 1);
    // RFC 6874 writes the % of fe80::1%eth0 as %25, people often do not.
    const auto scope = out.host.find("%25");
    if (scope != std::string::npos && scope + 3 < out.host.size()) out.host.erase(scope + 1, 2);
    text.remove_prefix(close + 1);
    has_port = text.starts_with(':');
    if (!has_port && !text.empty()) return invalid("only :PORT can follow the ] in " + where);
    port = has_port ? text.substr(1) : text;
  } else if (is_address) {
    out.host = text;  // an IPv6 address without brackets
  } else {
    has_port = text.find(':') != std::string_view::npos;
    out.host = take_until(text, ':');
    port = text;
  }
  if (out.host.empty()) return invalid("no host name in " + where);
  // Not an address: a user and a password with a colon, perhaps, without their host.
  if (is_address && !is_ipv6(out.host)) {
    return invalid("bad address in " + where + ": must be as in [fe80::1]:6379");
  }
  if (!is_address && !is_name(out.host)) {
    return invalid("bad host name in " + where + ": letters, digits, and - . _ only");
  }
  if (has_port) {
    const auto number = parse_int(port, 1, 65'535);
    if (!number) return invalid("bad port in " + where + ": must be 1 to 65535");
    out.port = static_cast<std::uint16_t>(*number);
  }
  return out;
}

}  // namespace

std::string shown(const HostPort& host) {
  std::string out = host.host.find(':') == std::string::npos ? host.host : '[' + host.host + ']';
  if (host.port != 0) out += ':' + std::to_string(host.port);
  return out;
}

Result<HostPort> parse_host_port(std::string_view text) { return host_of(text, "the address"); }

bool is_scheme(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '+' || c == '.';
  });
}

bool looks_like_url(std::string_view text) { return text.find("://") != std::string_view::npos; }

Result<Url> parse_url(std::string_view text) {
  Url url;
  const auto mark = text.find("://");
  if (mark == std::string_view::npos || !is_scheme(text.substr(0, mark))) {
    return invalid("not a URL: it must begin with scheme://");
  }
  url.scheme = util::lower(text.substr(0, mark));
  text.remove_prefix(mark + 3);
  if (text.find('#') != std::string_view::npos) return invalid("a # must be written %23 in a URL");

  const std::string_view before_query = take_until(text, '?');
  if (!may_be_query(text)) {
    return invalid(
        "an @ behind a ? in the URL: a ? in a password is written %3F, an @ in the query %40");
  }
  if (auto ok = take_query(text, url); !ok) return ok.error();
  // A password may hold a slash, so the path begins at the first slash behind the user.
  const auto at = before_query.rfind('@');
  const auto slash = before_query.find('/', at == std::string_view::npos ? 0 : at);
  std::string_view authority = before_query.substr(0, slash);
  if (slash != std::string_view::npos) {
    const auto path = decoded(before_query.substr(slash));
    if (!path) return invalid("bad %-escape in the path of the URL");
    url.path = *path;
  }
  if (auto ok = take_user(authority, url); !ok) return ok.error();
  while (!authority.empty()) {
    auto host = host_of(take_until(authority, ','), "the URL");
    if (!host) return host.error();
    url.hosts.push_back(*host);
  }
  return url;
}

std::string Url::redacted() const {
  std::string out = scheme + "://" + percent_encode(user);
  if (!password.empty()) out += ":***";
  if (!user.empty() || !password.empty()) out += '@';
  for (std::size_t i = 0; i < hosts.size(); ++i) out += (i > 0 ? "," : "") + shown(hosts[i]);
  out += printable(path);
  char mark = '?';
  for (const auto& [name, value] : query) {
    const bool secret = name.find("pass") != std::string::npos;
    out += mark + printable(name) + '=' + (secret ? "***" : printable(value));
    mark = '&';
  }
  return out;
}

}  // namespace dlock
