// The client library would ask the resolver itself, and block for as long as that does.
#include "backends/zookeeper/resolve.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <strings.h>
#include <sys/eventfd.h>

#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "util/fd.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock::zookeeper {
namespace {

Error unreachable(const HostPort& host, const std::string& why) {
  return {Errc::unreachable, "zookeeper " + util::printable(shown(host)) + ": " + why};
}

void add(Servers& out, const std::string& address, std::uint16_t port) {
  if (out.count++ > 0) out.list += ',';
  out.list += address + ':' + std::to_string(port);  // the library wants IPv6 without brackets
}

int look_up(const HostPort& host, int flags, Servers& out) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  const int status = getaddrinfo(host.host.c_str(), nullptr, &hints, &list);
  if (status != 0) return status;
  for (const addrinfo* item = list; item != nullptr; item = item->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(item->ai_addr, item->ai_addrlen, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) == 0) {
      add(out, text.data(), host.port);
    }
  }
  freeaddrinfo(list);
  return 0;
}

bool is_unknown(int status) {
  return status == EAI_NONAME || status == EAI_NODATA || status == EAI_ADDRFAMILY;
}

// Without AI_ADDRCONFIG where that finds nothing: it does not count loopback, and in a container
// that has nothing else /etc/hosts would seem empty.
int ask_resolver(const HostPort& host, Servers& out) {
  const int status = look_up(host, AI_ADDRCONFIG, out);
  return is_unknown(status) && look_up(host, 0, out) == 0 ? 0 : status;
}

bool is_plain(const HostPort& host, Servers& out) {
  if (look_up(host, AI_NUMERICHOST, out) == 0) return true;
  // RFC 6761 (6.3): always loopback, and no business of a name server.  ZooKeeper listens on both.
  if (strcasecmp(host.host.c_str(), "localhost") != 0) return false;
  add(out, "127.0.0.1", host.port);
  add(out, "::1", host.port);
  return true;
}

struct Lookup {
  std::vector<HostPort> hosts;
  Fd done{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex mutex;
  std::optional<Result<Servers>> answer;

  void run() {
    Servers found;
    std::optional<Error> error;
    for (const HostPort& host : hosts) {
      const int status = is_plain(host, found) ? 0 : ask_resolver(host, found);
      if (status == 0) continue;
      error = unreachable(host, is_unknown(status)    ? "no such host"
                                : status == EAI_AGAIN ? "the name server does not answer"
                                                      : gai_strerror(status));
    }
    {
      const std::lock_guard lock(mutex);
      if (found.count > 0) {
        answer = std::move(found);
      } else {
        answer = std::move(*error);
      }
    }
    eventfd_write(done.get(), 1);
  }
};

}  // namespace

Result<Servers> resolve(const std::vector<HostPort>& hosts, Deadline deadline, Cancel cancel) {
  Servers plain;
  bool all_plain = true;
  for (const HostPort& host : hosts) all_plain = all_plain && is_plain(host, plain);
  if (all_plain) return plain;

  const auto lookup = std::make_shared<Lookup>();
  lookup->hosts = hosts;
  if (!lookup->done) return unreachable(hosts.front(), std::strerror(errno));
  try {
    std::thread([lookup] { lookup->run(); }).detach();
  } catch (const std::system_error& error) {
    return unreachable(hosts.front(), error.code().message());
  }
  std::array<pollfd, 2> fds{{{cancel.fd(), POLLIN, 0}, {lookup->done.get(), POLLIN, 0}}};
  util::poll(fds, deadline);
  if (fds[0].revents != 0) {
    return Error{Errc::cancelled, "stopped waiting for the name server"};
  }
  const std::lock_guard lock(lookup->mutex);
  if (!lookup->answer) return unreachable(hosts.front(), "no answer from the name server in time");
  return std::move(*lookup->answer);
}

}  // namespace dlock::zookeeper
