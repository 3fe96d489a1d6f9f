// Why it holds.  The kernel gives a bind to port 0, and a connect, only ports that no socket is
// bound to.  A bind to a certain port succeeds beside ours as both sockets have SO_REUSEADDR and
// ours does not listen (socket(7)).
#include "support/reserved_port.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

namespace dlock::test {

ReservedPort::ReservedPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  const int on = 1;
  // Reuse only after the bind: it must not share the port of somebody who reserves as we do.
  if (!fd_ || ::bind(fd_.get(), any, size) != 0 || ::getsockname(fd_.get(), any, &size) != 0 ||
      ::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot reserve a port");
  }
  port_ = ntohs(address.sin_port);
}

const Fd& ReservedPort::listen() {
  if (::listen(fd_.get(), 16) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot listen");
  }
  return fd_;
}

}  // namespace dlock::test
