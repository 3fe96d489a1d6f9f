// Messages over a SOCK_SEQPACKET socket between two processes of this machine.
#pragma once

#include <cstddef>

#include "util/fd.hpp"

namespace dlock::util {

/// Sends one message, and a copy of the descriptor `passed` if that is not -1.  Never blocks and
/// never raises SIGPIPE.  False, with errno set, if the message will not arrive.
bool send_datagram(int socket, const void* message, std::size_t size, int passed = -1);

/// The size of the next message, which is written to `message` and cut to `size` bytes; 0 at the
/// end of the other process; -1, with errno set, if there is none (EAGAIN) or the socket is broken.
/// `passed`, if not null, takes the descriptor that came with it; others are closed.
ssize_t receive_datagram(int socket, void* message, std::size_t size, Fd* passed = nullptr);

}  // namespace dlock::util
