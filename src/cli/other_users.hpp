// The locks of other users of this machine.
#pragma once

#include <string>

namespace dlock::cli {

struct OtherUsers {
  std::string places;  // "/tmp/dlock-1000 (app), /tmp/dlock-1001 (web)"
  std::string user;    // one of them
};

/// The default directories of other users, for root; empty for others.
OtherUsers other_users_directories();

}  // namespace dlock::cli
