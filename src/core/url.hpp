// Where a lock service is: scheme://[user[:password]@]host[:port][,host[:port]...][/path][?query]
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace dlock {

struct HostPort {
  std::string host;        // without the brackets of an IPv6 address
  std::uint16_t port = 0;  // 0: not given

  bool operator==(const HostPort&) const = default;
};

/// `host`, `host:port`, `[v6]`, `[v6]:port` or a bare IPv6 address.  Errc::invalid names the part
/// that is wrong, and does not show it: it may be a piece of a password.
Result<HostPort> parse_host_port(std::string_view text);

/// `host:port`, the brackets of an IPv6 address put back; without the port if that is 0.
std::string shown(const HostPort& host);

struct Url {
  std::string scheme;  // in lower case
  std::string user;
  std::string password;
  std::vector<HostPort> hosts;
  std::string path;  // with its leading slash; empty if there is none
  std::map<std::string, std::string> query;

  /// The URL without its password, fit for messages: `redis://app:***@h:6379/0`.  Never print
  /// another form.
  std::string redacted() const;
};

/// True for what can be the scheme of a URL.  Nothing else of a text that is no good URL may be
/// shown.
bool is_scheme(std::string_view text);

/// True for what parse_url() is meant for: something with `://` in it.
bool looks_like_url(std::string_view text);

/// Errc::invalid names the part that is wrong, and shows nothing of the text.
Result<Url> parse_url(std::string_view text);

}  // namespace dlock
