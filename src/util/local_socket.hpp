// SOCK_SEQPACKET sockets between processes of this machine: listening, connecting, messages.
//
// Their names are in the kernel's abstract namespace, which each network namespace has of its own:
// there is nothing to remove, and a killed process leaves nothing behind.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dlock::util {

/// `id` is at most 64 bytes.  The socket does not block.  None, with errno set, if the name is in
/// use (EADDRINUSE) or the process may have no such socket.
Fd listen_locally(std::string_view id, int backlog);

/// None, with errno set: ECONNREFUSED if nobody listens, EAGAIN if the backlog was full until
/// `until`.  The socket blocks.
Fd connect_locally(std::string_view id, Deadline until);

/// Who has connected to this socket, or listens where it has connected to; none if the kernel does
/// not say.
std::optional<ucred> peer_of(int socket);
bool is_of_our_user_or_root(int socket);

/// So many descriptors may be passed on with one message.
inline constexpr std::size_t kMostPassed = 4;

/// Sends one message, and copies of the descriptors `passed`.  Never blocks and never raises
/// SIGPIPE.  False, with errno set, if the message will not arrive.
bool send_datagram(int socket, const void* message, std::size_t size,
                   std::span<const int> passed = {});

/// The size of the next message, which is written to `message` and cut to `size` bytes; 0 at the
/// end of the other process; -1, with errno set, if there is none (EAGAIN) or the socket is broken.
/// `passed`, if not null, takes the descriptors that came with it, and is as it was if none did.
ssize_t receive_datagram(int socket, void* message, std::size_t size,
                         std::vector<Fd>* passed = nullptr);

}  // namespace dlock::util
