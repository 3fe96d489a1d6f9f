#include "core/spelling.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <utility>

#include "util/text.hpp"

namespace dlock {
namespace {

template <class Address>
std::string written(int family, const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(family, &address, text.data(), text.size()) == nullptr ? "" : text.data();
}

std::string canonical_host(std::string host) {
  const auto scope = std::min(host.find('%'), host.size());  // fe80::1%eth0
  in6_addr six{};
  if (inet_pton(AF_INET6, host.substr(0, scope).c_str(), &six) != 1) {
    host = util::lower(host);
    if (host.size() > 1 && host.ends_with('.')) host.pop_back();
    in_addr four{};
    // As getaddrinfo() does: it takes "127.1" and "0x7f.0.0.1", too.
    return inet_aton(host.c_str(), &four) != 0 ? written(AF_INET, four) : host;
  }
  if (IN6_IS_ADDR_V4MAPPED(&six)) {
    in_addr four{};
    std::memcpy(&four, &six.s6_addr[12], sizeof four);
    return written(AF_INET, four);
  }
  // Elsewhere the scope says nothing.
  const bool has_scope = IN6_IS_ADDR_LINKLOCAL(&six) || IN6_IS_ADDR_MC_LINKLOCAL(&six);
  return written(AF_INET6, six) + (has_scope ? host.substr(scope) : "");
}

}  // namespace

HostPort canonical(HostPort host) {
  host.host = canonical_host(std::move(host.host));
  return host;
}

std::string canonical_list(const std::vector<HostPort>& hosts) {
  std::set<std::string> sorted;
  for (const HostPort& host : hosts) sorted.insert(shown(canonical(host)));
  std::string out;
  for (const std::string& host : sorted) out += (out.empty() ? "" : ",") + host;
  return out;
}

std::string canonical_path(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (!part.empty() && part != ".") out.append("/").append(part);
    path.remove_prefix(std::min(part.size() + 1, path.size()));
  }
  return out.empty() ? "/" : out;
}

}  // namespace dlock
