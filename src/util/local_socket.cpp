#include "util/local_socket.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

namespace dlock::util {
namespace {

union Control {
  std::array<char, CMSG_SPACE(kMostPassed * sizeof(int))> bytes;
  cmsghdr align;
};

struct Address {
  sockaddr_un name{};
  socklen_t length = 0;
};

Address address_of(std::string_view id) {
  const std::string name = std::string(1, '\0') + "dlock-" + std::string(id);
  Address out;
  out.name.sun_family = AF_UNIX;
  std::memcpy(out.name.sun_path, name.data(), std::min(name.size(), sizeof(out.name.sun_path)));
  out.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  return out;
}

Fd make_socket(int flags) { return Fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0)); }

// `fd`, or none if the call with it has failed; errno stays that of the call.
Fd if_ok(Fd fd, bool ok) {
  const int error = errno;
  if (!ok) fd.reset();
  errno = error;
  return fd;
}

}  // namespace

Fd listen_locally(std::string_view id, int backlog) {
  const Address address = address_of(id);
  Fd out = make_socket(SOCK_NONBLOCK);
  const bool ok =
      out &&
      bind(out.get(), reinterpret_cast<const sockaddr*>(&address.name), address.length) == 0 &&
      ::listen(out.get(), backlog) == 0;
  return if_ok(std::move(out), ok);
}

Fd connect_locally(std::string_view id, Deadline until) {
  const Address address = address_of(id);
  Fd out = make_socket(0);
  const Millis left = std::max(remaining(until), Millis{1});
  const timeval patience{.tv_sec = left.count() / 1'000, .tv_usec = left.count() % 1'000 * 1'000};
  bool ok = out && setsockopt(out.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0;
  // With a time limit also SIGCONT interrupts it.
  while (ok && connect(out.get(), reinterpret_cast<const sockaddr*>(&address.name),
                       address.length) != 0) {
    ok = errno == EINTR && Clock::now() < until;
  }
  return if_ok(std::move(out), ok);
}

std::optional<ucred> peer_of(int socket) {
  ucred out{};
  socklen_t size = sizeof(out);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &out, &size) != 0) return std::nullopt;
  return out;
}

bool is_of_our_user_or_root(int socket) {
  const auto peer = peer_of(socket);
  return peer && (peer->uid == geteuid() || peer->uid == 0);
}

bool send_datagram(int socket, const void* message, std::size_t size, std::span<const int> passed) {
  iovec part{const_cast<void*>(message), size};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  Control control{};
  if (!passed.empty()) {
    header.msg_control = control.bytes.data();
    header.msg_controllen = CMSG_SPACE(passed.size_bytes());
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(passed.size_bytes());
    std::memcpy(CMSG_DATA(item), passed.data(), passed.size_bytes());
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

ssize_t receive_datagram(int socket, void* message, std::size_t size, std::vector<Fd>* passed) {
  iovec part{message, size};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  Control control{};
  header.msg_control = control.bytes.data();
  header.msg_controllen = control.bytes.size();
  // ECONNRESET is told once, before the messages that are still in the queue: the other end was
  // closed before it had read all of ours.  What it sent before that counts.
  ssize_t got;
  do {
    got = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got <= 0) return got;
  std::vector<Fd> received;
  if (const cmsghdr* item = CMSG_FIRSTHDR(&header); item && item->cmsg_type == SCM_RIGHTS) {
    for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= item->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(item) + at, sizeof(fd));
      received.emplace_back(fd);
    }
  }
  if ((header.msg_flags & MSG_CTRUNC) != 0) {  // not enough descriptors were left
    errno = EMFILE;
    return -1;
  }
  if (passed && !received.empty()) *passed = std::move(received);
  return got;
}

}  // namespace dlock::util
