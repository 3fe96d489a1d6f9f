// Connections to a server, made within a deadline and given up at once when told so.
#pragma once

#include <span>
#include <string>

#include "core/cancel.hpp"
#include "core/result.hpp"
#include "core/url.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"
#include "util/resolve.hpp"

namespace dlock::redis {

/// A TCP connection to `address`, whose port is given: nonblocking, CLOEXEC, without Nagle's delay,
/// with keepalive probes.  Errc::cancelled, or Errc::unreachable with a message that says what is
/// wrong and does not name the server: the caller knows which of its names to put before it.
/// May leave a thread behind that waits for the name server; the process can end in spite of it.
Result<Fd> dial(const HostPort& address, Deadline deadline, Cancel cancel);

/// The same to a unix socket.  Errc::invalid for a path that is too long to be one.
Result<Fd> dial_unix(const std::string& path, Deadline deadline, Cancel cancel);

using util::SocketAddress;

/// What dial() does once the name is resolved: the first of `addresses` that answers.  `start` is
/// since when the caller has been waiting, for the message of a deadline that has passed.
Result<Fd> connect_first(std::span<const SocketAddress> addresses, Deadline start,
                         Deadline deadline, Cancel cancel);

}  // namespace dlock::redis
