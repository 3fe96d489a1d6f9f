// What only URLs of PostgreSQL say.
#pragma once

#include <string>

#include "backends/sql/place.hpp"

namespace dlock::postgres {

struct Place : sql::Place {  // prefix: [a-z_][a-z0-9_]{0,31}
  std::string directory;     // of the socket; its port is that of the only host
  // As libpq knows them; empty: its own default.
  std::string sslmode;
  std::string sslrootcert;
  std::string sslcert;
  std::string sslkey;
  bool has_pooler = false;  // one that keeps a session for each client
  std::string advisory;     // what postgres-row locks in place of a row: "42", "4,2", "hash"

  bool verifies() const { return sslmode.starts_with("verify"); }
};

/// Errc::invalid says what is wrong with the target.  A user or a password that it does not name is
/// left to libpq.
Result<Place> make_place(const Target& target);

}  // namespace dlock::postgres
