// MariaDB's library (seen with 3.3.20) says EINPROGRESS of each attempt that fails, whatever came
// of it.  One more attempt costs nothing that matters then.
#include "backends/mysql/probe.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>

#include "util/fd.hpp"
#include "util/poll.hpp"

namespace dlock::mysql {
namespace {

int attempt(const addrinfo& address, Deadline deadline) {
  const Fd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno;
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd item{fd.get(), POLLOUT, 0};
  if (util::poll({&item, 1}, deadline) == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

}  // namespace

int probe(const HostPort& host, Deadline deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(host.port);
  if (getaddrinfo(host.host.c_str(), port.c_str(), &hints, &list) != 0) return ETIMEDOUT;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  int error = ETIMEDOUT;
  for (const addrinfo* item = list; item != nullptr; item = item->ai_next) {
    error = attempt(*item, deadline);
    if (error == 0 || error == ECONNREFUSED) return error;
  }
  return error;
}

}  // namespace dlock::mysql
