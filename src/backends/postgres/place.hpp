// Which servers, how to get in, which database, and what the names of the tables begin with.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/backend.hpp"

namespace dlock::postgres {

/// What the names of tables begin with, if nothing else is said.
inline constexpr std::string_view kDefaultPrefix = "dlock_";

struct Place {
  std::string location;         // as a URL without secrets
  std::string name;             // as BackendEntry::place() says
  std::string shown;            // for messages: "postgres db1:5432,db2:5432"
  std::vector<HostPort> hosts;  // a primary and its standbys; of a socket, the port only
  std::string socket;           // directory of a unix socket; empty: none
  std::string user;             // empty: whom libpq finds, in PGUSER for one
  std::string password;         // empty: libpq looks into .pgpass
  std::string database;
  std::string prefix;  // of the names of tables: [a-z_][a-z0-9_]{0,31}
  // As libpq knows them; empty: its own default.
  std::string sslmode;
  std::string sslrootcert;
  std::string sslcert;
  std::string sslkey;
  bool has_pooler = false;        // one that keeps a session for each client
  std::string advisory;           // what postgres-row locks in place of a row: "42", "4,2", "hash"
  Millis connect_timeout{5'000};  // for one host
  /// Which of the hosts could be written to last: it is asked first.
  std::shared_ptr<std::atomic<std::size_t>> primary = std::make_shared<std::atomic<std::size_t>>(0);

  /// The host for messages: "postgres db1:5432", "postgres /run/postgresql".
  std::string shown_host(const HostPort& host) const;

  bool verifies() const { return sslmode.starts_with("verify"); }
};

/// Errc::invalid says what is wrong with the target.
Result<Place> make_place(const Target& target);

}  // namespace dlock::postgres
