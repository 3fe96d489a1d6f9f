// A message is one datagram with the bytes of its struct: both ends are the same binary.

#include "engine/link.hpp"

#include <fcntl.h>
#include <linux/sockios.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <new>
#include <type_traits>

#include "util/local_socket.hpp"

namespace dlock {

Deadline SharedPage::lease_end() const {
  Deadline first = kNever;
  for (const LeaseEnd& lease : leases) first = std::min(first, lease.get());
  return first;
}

template <class In, class Out>
bool LinkEnd<In, Out>::send(const Out& message, std::span<const int> passed) {
  static_assert(std::is_trivially_copyable_v<Out>);
  return !fd_ || util::send_datagram(fd_.get(), &message, sizeof(message), passed) ||
         errno == EPIPE || errno == ECONNRESET;
}

template <class In, class Out>
bool LinkEnd<In, Out>::has_room() const {
  constexpr int kFew = 16'384;  // of the 212992 bytes that a socket usually has
  int unread = 0;
  return ioctl(fd_.get(), SIOCOUTQ, &unread) != 0 || unread < kFew;
}

template <class In, class Out>
std::optional<In> LinkEnd<In, Out>::receive(std::vector<Fd>* passed) {
  In message;
  std::vector<Fd> came;
  const ssize_t got = util::receive_datagram(fd_.get(), &message, sizeof(message), &came);
  if (passed != nullptr) std::move(came.begin(), came.end(), std::back_inserter(*passed));
  if (got == static_cast<ssize_t>(sizeof(message))) return message;
  if (got >= 0 || errno != EAGAIN) close();  // after an error, the other process must notice
  return std::nullopt;
}

template class LinkEnd<ToLauncher, ToSupervisor>;
template class LinkEnd<ToSupervisor, ToLauncher>;

std::optional<Link> make_link(SharedPage& page) {
  std::array<int, 2> fds{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()) != 0) return std::nullopt;
  Link link;
  link.launcher.reset(fds[0]);
  link.supervisor.reset(fds[1]);
  link.page = &page;
  return link;
}

std::optional<Link> make_link() {
  void* memory =
      mmap(nullptr, sizeof(SharedPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return std::nullopt;
  return make_link(*new (memory) SharedPage);
}

void wake_at_end_of(int other) {
  fcntl(other, F_SETOWN, getpid());
  fcntl(other, F_SETSIG, SIGCONT);
  fcntl(other, F_SETFL, fcntl(other, F_GETFL) | O_ASYNC);
}

}  // namespace dlock
