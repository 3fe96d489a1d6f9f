#include "engine/link.hpp"

#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "util/datagram.hpp"

namespace dlock {
namespace {

// One datagram: what kind it is, its numbers, a text.  Both ends are the same binary.
struct Wire {
  std::int32_t kind = 0;
  std::int32_t number = 0;
  std::int64_t held_ms = -1;
  std::int64_t waiting = -1;
  bool flag = false;
  std::uint16_t length = 0;
  std::array<char, 1024> text{};
};

struct Packet {
  Wire wire;
  int fd = -1;  // sent: the message's own; received: ours from now on
};

Packet pack(const ToSupervisor& message) {
  Packet out;
  out.wire.kind = static_cast<std::int32_t>(message.index());
  if (const auto* signal = std::get_if<to_supervisor::Signal>(&message)) {
    out.wire.number = signal->number;
    out.wire.flag = signal->from_terminal;
  }
  return out;
}

Packet pack(const ToFront& message) {
  Packet out;
  out.wire.kind = static_cast<std::int32_t>(message.index());
  if (const auto* blocked = std::get_if<to_front::Blocked>(&message)) {
    const std::size_t length = std::min(blocked->holder.size(), out.wire.text.size());
    std::memcpy(out.wire.text.data(), blocked->holder.data(), length);
    out.wire.length = static_cast<std::uint16_t>(length);
    if (blocked->held) out.wire.held_ms = blocked->held->count();
    if (blocked->waiting) out.wire.waiting = *blocked->waiting;
  } else if (const auto* leased = std::get_if<to_front::Leased>(&message)) {
    out.fd = leased->alarm.get();
  } else if (const auto* granted = std::get_if<to_front::Granted>(&message)) {
    out.fd = granted->witness.get();
  } else if (const auto* ended = std::get_if<to_front::Ended>(&message)) {
    out.wire.number = ended->exit_status;
    out.wire.flag = ended->left_behind;
  }
  return out;
}

void unpack(const Packet& packet, ToSupervisor& message) {
  if (packet.wire.kind == 0) {
    message = to_supervisor::Go{};
  } else {
    message = to_supervisor::Signal{packet.wire.number, packet.wire.flag};
  }
}

void unpack(const Packet& packet, ToFront& message) {
  if (packet.wire.kind == 0) {
    to_front::Blocked blocked;
    blocked.holder.assign(packet.wire.text.data(), packet.wire.length);
    if (packet.wire.held_ms >= 0) blocked.held = Millis{packet.wire.held_ms};
    if (packet.wire.waiting >= 0) blocked.waiting = static_cast<unsigned>(packet.wire.waiting);
    message = std::move(blocked);
  } else if (packet.wire.kind == 1) {
    message = to_front::Leased{Fd(packet.fd)};
  } else if (packet.wire.kind == 2) {
    message = to_front::Granted{Fd(packet.fd)};
  } else {
    message = to_front::Ended{packet.wire.number, packet.wire.flag};
  }
}

}  // namespace

template <class In, class Out>
void LinkEnd<In, Out>::send(const Out& message) {
  const Packet packet = pack(message);
  const std::size_t size = offsetof(Wire, text) + static_cast<std::size_t>(packet.wire.length);
  util::send_datagram(fd_.get(), &packet.wire, size, packet.fd);
}

template <class In, class Out>
std::optional<In> LinkEnd<In, Out>::receive() {
  Packet packet;
  Fd passed;
  const ssize_t got = util::receive_datagram(fd_.get(), &packet.wire, sizeof(packet.wire), &passed);
  if (got == 0 || (got < 0 && errno != EAGAIN)) {
    closed_ = true;
    fd_.reset();  // if it was an error, the other process is to notice
  }
  if (got <= 0) return std::nullopt;
  packet.fd = passed.release();
  In message;
  unpack(packet, message);
  return message;
}

template class LinkEnd<ToFront, ToSupervisor>;
template class LinkEnd<ToSupervisor, ToFront>;

std::optional<Link> make_link() {
  std::array<int, 2> fds{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()) != 0) return std::nullopt;
  Link link;
  link.front.reset(fds[0]);
  link.supervisor.reset(fds[1]);
  void* memory =
      mmap(nullptr, sizeof(SharedPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return std::nullopt;
  link.page = new (memory) SharedPage;
  return link;
}

}  // namespace dlock
