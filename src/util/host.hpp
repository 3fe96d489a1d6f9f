// Who and where this process is, for owner records.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "util/clock.hpp"

namespace dlock::util {

std::string host_name();

/// To its first dot; an IP address whole.
std::string short_host(std::string_view name);

/// The addresses of both ends of a connection, as numbers; "" of one that is not by TCP.
struct Ends {
  std::string here, there;
  bool leaves_machine() const { return there != here && !there.starts_with("127."); }
};
Ends ends_of(int socket);

/// The name of the effective user, or its number where it has no name.
std::string user_name();
std::string user_name(uid_t uid);

/// Milliseconds since 1970 by the wall clock; 0 if it is set to an earlier time.  For fencing
/// tokens.
std::uint64_t utc_now_ms();
std::uint64_t utc_now_us();

/// The wall clock's time as RFC 3339 in UTC with milliseconds: for showing, never for deciding.
std::string utc_now();

/// The same for an instant that is `from_now` away, which may be negative; "" if that is more than
/// a thousand years.
std::string utc_in(Millis from_now);

/// The same for people of this machine: `Thu 2026-11-26 02:14:07 CET`.
std::string local_in(Millis from_now);

}  // namespace dlock::util
