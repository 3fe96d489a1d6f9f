#include "core/spelling.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
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
  host = util::lower(host);
  if (host.size() > 1 && host.ends_with('.')) host.pop_back();
  in_addr four{};
  // As getaddrinfo() does: it takes "127.1" and "0x7f.0.0.1", too.
  if (inet_aton(host.c_str(), &four) != 0) return written(AF_INET, four);
  const auto scope = std::min(host.find('%'), host.size());  // fe80::1%eth0
  in6_addr six{};
  if (inet_pton(AF_INET6, host.substr(0, scope).c_str(), &six) != 1) return host;
  if (IN6_IS_ADDR_V4MAPPED(&six)) {
    std::memcpy(&four, &six.s6_addr[12], sizeof four);
    return written(AF_INET, four);
  }
  return written(AF_INET6, six) + host.substr(scope);
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
  std::string out = std::filesystem::path(path).lexically_normal();
  if (out.size() > 1 && out.ends_with('/')) out.pop_back();
  return out;
}

}  // namespace dlock
