// Which server, how to get in, and what the names of its locks begin with.
#pragma once

#include <optional>
#include <string>

#include "backends/redis/tls.hpp"
#include "core/backend.hpp"

namespace dlock::redis {

struct Address {
  HostPort host;       // unless `socket` is set
  std::string socket;  // path of a unix socket
  std::string user;
  std::string password;
  unsigned database = 0;
  std::optional<TlsFiles> tls;  // none: plain text
  Millis patience{5'000};       // with one answer, and with a server that is just starting
  std::string shown;            // for messages: "redis 10.0.0.7:6379"
};

struct Place {
  Address address;
  std::string prefix;
  std::string location;  // as a URL without secrets
};

/// Errc::invalid says what is wrong with the target.
Result<Place> place_of(const Target& target);

}  // namespace dlock::redis
