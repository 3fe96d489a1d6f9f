#include "util/datagram.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace dlock::util {
namespace {

union Control {
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
  cmsghdr align;
};

}  // namespace

bool send_datagram(int socket, const void* message, std::size_t size, int passed) {
  iovec part{const_cast<void*>(message), size};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  Control control{};
  if (passed >= 0) {
    header.msg_control = control.bytes.data();
    header.msg_controllen = control.bytes.size();
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(item), &passed, sizeof(passed));
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

ssize_t receive_datagram(int socket, void* message, std::size_t size, Fd* passed) {
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
  if (got > 0 && (header.msg_flags & MSG_CTRUNC) != 0) {  // no descriptor was left for `passed`
    errno = EMFILE;
    return -1;
  }
  if (got <= 0) return got;
  if (const cmsghdr* item = CMSG_FIRSTHDR(&header); item && item->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(item), sizeof(fd));
    Fd received(fd);
    if (passed) *passed = std::move(received);
  }
  return got;
}

}  // namespace dlock::util
