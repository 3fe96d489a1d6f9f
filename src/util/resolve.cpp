// getaddrinfo(3) takes as long as it likes and cannot be interrupted, so it runs on a thread that
// is left behind when nobody waits for it any longer.  That thread owns a share of all it touches,
// and inherits the signal mask, so that it takes no signal.
#include "util/resolve.hpp"

#include <netdb.h>
#include <poll.h>
#include <strings.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "util/fd.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock::util {
namespace {

using Addresses = std::vector<SocketAddress>;
using End = Resolution::End;

Resolution failed(std::string why) { return {End::failed, {}, uncapitalized(std::move(why))}; }

int look_up(const std::string& host, std::uint16_t port, int flags, Addresses& out) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int status = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (status != 0) return status;
  for (const addrinfo* item = list; item != nullptr; item = item->ai_next) {
    SocketAddress& added = out.emplace_back();
    std::memcpy(&added.storage, item->ai_addr, item->ai_addrlen);
    added.length = item->ai_addrlen;
  }
  freeaddrinfo(list);
  return 0;
}

bool is_unknown(int status) {
  return status == EAI_NONAME || status == EAI_NODATA || status == EAI_ADDRFAMILY;
}

// The families by turns, as RFC 8305 (4) has it: a dead IPv6 with many addresses costs one turn.
Addresses by_turns(Addresses sorted) {
  const auto family = sorted.front().storage.ss_family;
  auto b = std::stable_partition(sorted.begin(), sorted.end(),
                                 [&](const auto& it) { return it.storage.ss_family == family; });
  const auto end_of_a = b;
  Addresses out;
  for (auto a = sorted.begin(); a != end_of_a || b != sorted.end();) {
    if (a != end_of_a) out.push_back(*a++);
    if (b != sorted.end()) out.push_back(*b++);
  }
  return out;
}

// Blocks for as long as the resolver does.
Resolution ask_resolver(const std::string& host, std::uint16_t port) {
  Addresses found;
  // AI_ADDRCONFIG does not ask for what this host has no address to reach from.  It does not count
  // loopback: in a container that has nothing else, /etc/hosts would seem empty.  Hence twice.
  int status = look_up(host, port, AI_ADDRCONFIG, found);
  if (is_unknown(status) && look_up(host, port, 0, found) == 0) status = 0;
  if (status == 0) return {End::found, by_turns(std::move(found)), {}};
  if (is_unknown(status)) return failed("no such host");
  if (status == EAI_AGAIN) return failed("the name server does not answer");
  if (status == EAI_SYSTEM) return failed(std::strerror(errno));
  return failed(std::string("the name cannot be resolved: ") + gai_strerror(status));
}

struct Lookup {
  Fd done{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex mutex;
  std::optional<Resolution> answer;

  void run(const std::string& host, std::uint16_t port) {
    Resolution result = ask_resolver(host, port);
    {
      const std::lock_guard lock(mutex);
      answer = std::move(result);
    }
    eventfd_write(done.get(), 1);
  }
};

}  // namespace

std::string numeric_host(const SocketAddress& address) {
  std::array<char, NI_MAXHOST> text{};
  const auto* name = reinterpret_cast<const sockaddr*>(&address.storage);
  getnameinfo(name, address.length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return text.data();
}

Resolution resolve(const std::string& host, std::uint16_t port, Deadline deadline, int cancel_fd) {
  Addresses found;
  if (look_up(host, port, AI_NUMERICHOST, found) == 0) return {End::found, std::move(found), {}};
  // RFC 6761 (6.3): always loopback, and no business of a name server.
  if (strcasecmp(host.c_str(), "localhost") == 0 || strcasecmp(host.c_str(), "localhost.") == 0) {
    for (const char* loopback : {"127.0.0.1", "::1"}) {
      look_up(loopback, port, AI_NUMERICHOST, found);
    }
    return {End::found, std::move(found), {}};
  }
  // An IPv6 address of an interface that is not there, and no name.
  if (host.find(':') != std::string::npos) return failed("no such address");

  const auto lookup = std::make_shared<Lookup>();
  if (!lookup->done) return failed(std::strerror(errno));
  try {
    std::thread([=] { lookup->run(host, port); }).detach();
  } catch (const std::system_error& error) {
    return failed(std::strerror(error.code().value()));
  }
  std::array<pollfd, 2> fds{{{cancel_fd, POLLIN, 0}, {lookup->done.get(), POLLIN, 0}}};
  poll(fds, deadline);
  if (fds[0].revents != 0) return {End::cancelled, {}, {}};
  const std::lock_guard lock(lookup->mutex);
  return lookup->answer ? std::move(*lookup->answer) : Resolution{End::timed_out, {}, {}};
}

}  // namespace dlock::util
