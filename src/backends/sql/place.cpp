#include "backends/sql/place.hpp"

#include <utility>

#include "core/spelling.hpp"
#include "util/text.hpp"

namespace dlock::sql {

std::string Place::shown_host(const HostPort& host) const {
  return product_ + ' ' + util::printable(socket.empty() ? dlock::shown(host) : socket);
}

void Place::keep_only(const HostPort& host) {
  hosts = {host};
  primary = std::make_shared<std::atomic<std::size_t>>(0);
}

Result<Url> Place::begin(const Target& target, std::span<const UrlForm> forms) {
  const std::string_view scheme = target.url.scheme;
  const UrlForm* form = find_form(forms, scheme.substr(0, scheme.find('+')));
  auto url = complete_url(target.url, form != nullptr ? std::span(form, 1) : forms);
  if (!url) return url.error();
  database = url->path.substr(1);
  user = url->user;
  password = url->password;
  connect_timeout = target.connect_timeout;
  return url;
}

void Place::finish(Url url, std::string_view product) {
  product_ = product;
  const std::string_view method = url.scheme == product ? "-table" : "";
  name = url.scheme + std::string(method) + "://";
  url.query.clear();  // how we get there is no part of where the locks are
  if (!socket.empty()) {
    url.hosts.clear();
    url.query.emplace("socket", socket);
    shown = shown_host({});
    name += url.path + "?socket=" + canonical_path(socket);
  } else {
    hosts = url.hosts;
    for (const HostPort& host : hosts) {
      shown += (shown.empty() ? product_ + ' ' : ",") + util::printable(dlock::shown(host));
    }
    name += canonical_list(hosts) + url.path;
  }
  location = url.redacted();
}

}  // namespace dlock::sql
