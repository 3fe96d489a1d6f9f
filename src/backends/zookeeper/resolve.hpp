// From host names to what the client library connects to without asking a name server.
#pragma once

#include <string>
#include <vector>

#include "core/cancel.hpp"
#include "core/result.hpp"
#include "core/url.hpp"
#include "util/clock.hpp"

namespace dlock::zookeeper {

struct Servers {
  std::string list;  // "10.0.0.7:2181,[fd00::7]:2181"
  unsigned count = 0;
};

/// The addresses of all hosts that have one.  Errc::unreachable if none has, and says why.
Result<Servers> resolve(const std::vector<HostPort>& hosts, Deadline deadline, Cancel cancel);

}  // namespace dlock::zookeeper
