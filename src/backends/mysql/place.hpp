// Which servers, how to get in, which database, and what the names of the tables begin with.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/backend.hpp"

namespace dlock::mysql {

/// What the names of tables begin with, if nothing else is said.
inline constexpr std::string_view kDefaultPrefix = "dlock_";

/// preferred: encrypted where the server can.  on: in any case, but any certificate is accepted.
/// verify: its certificate must also lead to a CA that is trusted and bear the name or address in
/// the URL.
enum class Tls { off, preferred, on, verify };

/// Whether a server without TLS is refused.
inline bool needs_tls(Tls tls) { return tls == Tls::on || tls == Tls::verify; }

struct Place {
  std::string location;  // as a URL without secrets
  std::string name;      // as BackendEntry::place() says
  std::string shown;     // for messages: "mysql db1:3306,db2:3306"
  std::vector<HostPort>
      hosts;           // a primary and its standbys; one that stands for the socket, if set
  std::string socket;  // path of a unix socket; empty: none
  std::string user;
  std::string password;
  std::string database;
  std::string prefix;  // of the names of tables: [A-Za-z0-9_]{0,32}
  Tls tls = Tls::off;
  // Paths of PEM files.
  std::string ca;    // empty: whom this machine trusts
  std::string cert;  // ours, with the key that belongs to it; or none
  std::string key;
  Millis connect_timeout{5'000};  // for one host
  /// Which of the hosts could be written to last: it is asked first.
  std::shared_ptr<std::atomic<std::size_t>> primary = std::make_shared<std::atomic<std::size_t>>(0);
  /// Whether they belong to a cluster of several that take writes; unknown before the first
  /// connection.
  enum class Cluster { unknown, no, galera, group };
  std::shared_ptr<std::atomic<Cluster>> cluster =
      std::make_shared<std::atomic<Cluster>>(Cluster::unknown);

  /// The host for messages: "mysql db1:3306", "mysql /run/mysqld/mysqld.sock".
  std::string shown_host(const HostPort& host) const;
};

/// Errc::invalid says what is wrong with the target.
Result<Place> make_place(const Target& target);

}  // namespace dlock::mysql
