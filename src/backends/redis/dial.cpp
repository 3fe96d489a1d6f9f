// A name may have several addresses, some of them dead: an IPv6 that leads nowhere, a server that
// is down.  They are tried as in RFC 8305, each a moment after the one before it.
#include "backends/redis/dial.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "util/duration.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

// The Connection Attempt Delay that RFC 8305 (5) recommends.
constexpr Millis kHeadStart{250};

// How soon a unix socket whose queue is full is tried again: a server empties it many times a
// second.
constexpr Millis kUnixRetry{20};

Error unreachable(std::string message) { return {Errc::unreachable, std::move(message)}; }

Error failed(int error) { return unreachable(util::uncapitalized(std::strerror(error))); }

Error cancelled() { return {Errc::cancelled, "stopped connecting"}; }

Error timed_out(const std::string& what, Deadline start, Deadline deadline) {
  // What went by between setting the deadline and `start` is rounded away: 5s, not 4.9s.
  const auto given = remaining(deadline, start).count();
  const auto step = given < 1'000 ? 10 : 100;
  const Millis rounded{(given + step - 1) / step * step};
  if (rounded == Millis::zero()) return unreachable(what + " in time");
  return unreachable(what + " within " + util::format_duration(rounded));
}

Result<std::vector<SocketAddress>> resolve(const HostPort& address, Deadline start,
                                           Deadline deadline, Cancel cancel) {
  auto found = util::resolve(address.host, address.port, deadline, cancel.fd());
  switch (found.end) {
    case util::Resolution::End::found:
      return std::move(found.addresses);
    case util::Resolution::End::timed_out:
      return timed_out("no answer from the name server", start, deadline);
    case util::Resolution::End::cancelled:
      return cancelled();
    case util::Resolution::End::failed:
      break;
  }
  return unreachable(std::move(found.why));
}

void set_options(int fd) {
  const auto set = [fd](int level, int option, int value) {
    ::setsockopt(fd, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  // A subscription says nothing for hours.  NAT boxes and firewalls forget a silent connection,
  // some after five minutes, and a server that vanished is not missed by who only listens: a probe
  // a minute keeps the former awake and tells of the latter after 60 + 3 * 20 seconds.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 20);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

// On loopback, a connect to a port that nobody listens on, and that lies in the range from which
// the kernel picks ours, can meet itself (simultaneous open).  Our own commands would come back as
// the server's replies, and the server could not be started while we have its port.
bool met_itself(int fd) {
  sockaddr_storage ours{};
  sockaddr_storage theirs{};
  socklen_t length = sizeof ours;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&ours), &length);
  length = sizeof theirs;
  ::getpeername(fd, reinterpret_cast<sockaddr*>(&theirs), &length);
  return std::memcmp(&ours, &theirs, sizeof ours) == 0;
}

// A socket on its way to `address`; none, with errno set, if that failed at once.
Fd start_connecting(const SocketAddress& address) {
  Fd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return {};
  set_options(fd.get());
  const auto* name = reinterpret_cast<const sockaddr*>(&address.storage);
  if (::connect(fd.get(), name, address.length) == 0 || errno == EINPROGRESS) return fd;
  const int error = errno;
  fd.reset();
  errno = error;
  return {};
}

// How a connect that poll reports came out: 0 or an errno.
int outcome_of(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error == 0 && met_itself(fd) ? ECONNREFUSED : error;
}

// That this host has no way there says less than what another address answered.
int more_telling(int before, int error) {
  const bool no_way = error == ENETUNREACH || error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
  return before != 0 && no_way ? before : error;
}

}  // namespace

Result<Fd> connect_first(std::span<const SocketAddress> addresses, Deadline start,
                         Deadline deadline, Cancel cancel) {
  std::vector<Fd> attempts;
  Deadline next_at{};  // when the next address joins in
  int error = 0;
  for (;;) {
    if (!addresses.empty() && (attempts.empty() || Clock::now() >= next_at)) {
      next_at = after(Clock::now(), kHeadStart);
      if (Fd fd = start_connecting(addresses.front())) {
        attempts.push_back(std::move(fd));
      } else {
        error = more_telling(error, errno);
        next_at = {};
      }
      addresses = addresses.subspan(1);
    }
    if (attempts.empty() && addresses.empty()) return failed(error);
    std::vector<pollfd> fds{{cancel.fd(), POLLIN, 0}};
    for (const Fd& attempt : attempts) fds.push_back({attempt.get(), POLLOUT, 0});
    const int ready = util::poll(fds, addresses.empty() ? deadline : std::min(deadline, next_at));
    if (fds[0].revents != 0) return cancelled();
    for (std::size_t i = attempts.size(); i-- > 0;) {
      if (fds[i + 1].revents == 0) continue;
      const int outcome = outcome_of(attempts[i].get());
      if (outcome == 0) return std::move(attempts[i]);
      error = more_telling(error, outcome);
      attempts.erase(attempts.begin() + static_cast<std::ptrdiff_t>(i));
      next_at = {};
    }
    if (ready == 0 && Clock::now() >= deadline) return timed_out("no answer", start, deadline);
  }
}

Result<Fd> dial(const HostPort& address, Deadline deadline, Cancel cancel) {
  const Deadline start = Clock::now();
  const auto addresses = resolve(address, start, deadline, cancel);
  if (!addresses) return addresses.error();
  return connect_first(addresses.value(), start, deadline, cancel);
}

Result<Fd> dial_unix(const std::string& path, Deadline deadline, Cancel cancel) {
  const Deadline start = Clock::now();
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof name.sun_path) {
    return Error{Errc::invalid, "the path of a socket cannot be longer than " +
                                    std::to_string(sizeof name.sun_path - 1) + " bytes"};
  }
  path.copy(name.sun_path, path.size());
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return failed(errno);
  while (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    if (errno == ENOENT) return unreachable("no such socket");
    if (errno != EAGAIN) return failed(errno);
    // The server's queue is full, and the kernel tells nobody but blocked callers, who could not
    // hear Cancel, when it has room again.
    if (Clock::now() >= deadline) return timed_out("no answer", start, deadline);
    pollfd item{cancel.fd(), POLLIN, 0};
    if (util::poll({&item, 1}, std::min(deadline, after(Clock::now(), kUnixRetry))) > 0) {
      return cancelled();
    }
  }
  return fd;
}

}  // namespace dlock::redis
