#include "backends/zookeeper/resolve.hpp"

#include <optional>

#include "util/resolve.hpp"
#include "util/text.hpp"

namespace dlock::zookeeper {

// The client library would ask the resolver itself, and block for as long as that does.  It wants
// IPv6 without brackets.
Result<Servers> resolve(const std::vector<HostPort>& hosts, Deadline deadline, Cancel cancel) {
  using End = util::Resolution::End;
  Servers out;
  std::optional<Error> error;
  for (const HostPort& host : hosts) {
    const auto found = util::resolve(host.host, host.port, deadline, cancel.fd());
    if (found.end == End::cancelled) {
      return Error{Errc::cancelled, "stopped waiting for the name server"};
    }
    if (found.end != End::found) {
      error = {
          Errc::unreachable,
          "zookeeper " + util::printable(shown(host)) + ": " +
              (found.end == End::timed_out ? "no answer from the name server in time" : found.why)};
    }
    for (const auto& address : found.addresses) {
      if (out.count++ > 0) out.list += ',';
      out.list += util::numeric_host(address) + ':' + std::to_string(host.port);
    }
  }
  return out.count > 0 ? Result<Servers>(std::move(out)) : *error;
}

}  // namespace dlock::zookeeper
