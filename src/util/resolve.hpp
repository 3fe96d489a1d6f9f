// From the name of a host to its addresses.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "util/clock.hpp"

namespace dlock::util {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

/// "10.0.0.7" or "fd00::7", without the port.
std::string numeric_host(const SocketAddress& address);

struct Resolution {
  enum class End { found, failed, timed_out, cancelled };
  End end = End::failed;
  std::vector<SocketAddress> addresses;  // found: in the order in which to try them; one at least
  std::string why;                       // failed: "no such host"
};

/// Asks the system's resolver, unless `host` is an address or "localhost".  Waits until `deadline`,
/// or until `cancel_fd` is readable.  May leave a thread behind that waits for the name server; the
/// process can end in spite of it.
Resolution resolve(const std::string& host, std::uint16_t port, Deadline deadline, int cancel_fd);

}  // namespace dlock::util
