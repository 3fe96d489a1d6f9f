// Who and where this process is, for owner records.
#pragma once

#include <string>

namespace dlock::util {

std::string host_name();

/// The name of the effective user, or its number where it has no name.
std::string user_name();

/// The wall clock's time as RFC 3339 in UTC with milliseconds: for showing, never for deciding.
std::string utc_now();

}  // namespace dlock::util
