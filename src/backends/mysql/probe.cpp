// MariaDB's library (seen with 3.3.20) says EINPROGRESS of each attempt that fails, whatever came
// of it.  One more attempt costs nothing that matters then.
#include "backends/mysql/probe.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "util/fd.hpp"
#include "util/poll.hpp"
#include "util/resolve.hpp"

namespace dlock::mysql {
namespace {

int attempt(const util::SocketAddress& address, Deadline deadline) {
  const Fd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno;
  const auto* name = reinterpret_cast<const sockaddr*>(&address.storage);
  if (::connect(fd.get(), name, address.length) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd item{fd.get(), POLLOUT, 0};
  if (util::poll({&item, 1}, deadline) == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

}  // namespace

int probe(const HostPort& host, Deadline deadline) {
  int error = ETIMEDOUT;
  for (const auto& address : util::resolve(host.host, host.port, deadline, -1).addresses) {
    error = attempt(address, deadline);
    if (error == 0 || error == ECONNREFUSED) return error;
  }
  return error;
}

}  // namespace dlock::mysql
