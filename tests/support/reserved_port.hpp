// A TCP port that is ours while the object lives, also while nobody listens on it.
#pragma once

#include "util/fd.hpp"

namespace dlock::test {

/// A port of 127.0.0.1 that the kernel gives to nobody else, neither to a bind nor to a connect.
/// A server that sets SO_REUSEADDR (all do) can listen on it, end, and listen again; a connect in
/// between is refused.  Throws if there is no port left.
class ReservedPort {
 public:
  ReservedPort();
  int port() const { return port_; }
  /// For a server in this process: what to accept connections from.
  const Fd& listen();

 private:
  Fd fd_;
  int port_ = 0;
};

}  // namespace dlock::test
