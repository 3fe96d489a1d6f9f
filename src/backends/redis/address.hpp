// Which server, or servers, how to get in, and what the names of the locks begin with.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/redis/tls.hpp"
#include "core/backend.hpp"

namespace dlock::redis {

struct Sentinels;

struct Address {
  HostPort host;       // unless `socket` or `sentinels` is set
  std::string socket;  // path of a unix socket
  std::string user;
  std::string password;
  unsigned database = 0;
  std::optional<TlsFiles> tls;  // none: plain text
  Millis patience{5'000};       // with one answer, and with a server that is just starting
  std::string shown;            // for messages: "redis 10.0.0.7:6379"
  std::string password_option = "--password-file";  // likewise
  std::shared_ptr<Sentinels> sentinels;             // who know the host; null: it is known
};

struct Place {
  Address address;
  std::string prefix;
  std::string location;  // as a URL without secrets
  std::string name;      // as BackendEntry::place() says
};

struct Places {
  std::string location;  // as a URL without users and secrets
  std::string name;      // as BackendEntry::place() says
  std::vector<Address> addresses;
  std::string prefix;
};

/// Errc::invalid says what is wrong with the target.
Result<Place> place_of(const Target& target);

/// The same for redlock: at least one server, none twice.  What the URL of one server leaves open,
/// target.url says for all: user and password, database.
Result<Places> places_of(const Target& target);

/// By which an operator talks to it: "redis-cli -h 10.0.0.7 -p 6379 --askpass".
std::string redis_cli(const Address& address);

/// What can be lost, for those who have not said in the URL that they know; none without sentinels.
std::optional<std::string> failover_advice(const Address& address);

/// What an operator who runs this many servers should know before one of them fails; none if there
/// is nothing to say against the number.
std::optional<std::string> advice(unsigned servers);

}  // namespace dlock::redis
