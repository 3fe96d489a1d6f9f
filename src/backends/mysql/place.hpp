// What only URLs of MySQL and MariaDB say.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "backends/sql/place.hpp"

namespace dlock::mysql {

/// preferred: encrypted where the server can.  on: in any case, but any certificate is accepted.
/// verify: its certificate must also lead to a CA that is trusted and bear the name or address in
/// the URL.
enum class Tls { off, preferred, on, verify };

/// Whether a server without TLS is refused.
inline bool needs_tls(Tls tls) { return tls == Tls::on || tls == Tls::verify; }

struct Place : sql::Place {  // prefix: [A-Za-z0-9_]{0,32}
  Tls tls = Tls::off;
  // Paths of PEM files.
  std::string ca;    // empty: whom this machine trusts
  std::string cert;  // ours, with the key that belongs to it; or none
  std::string key;
  /// Whether they belong to a cluster of several that take writes; unknown before the first
  /// connection.
  enum class Cluster { unknown, no, galera, group };
  std::shared_ptr<std::atomic<Cluster>> cluster =
      std::make_shared<std::atomic<Cluster>>(Cluster::unknown);

  void keep_only(const HostPort& host) {
    sql::Place::keep_only(host);
    cluster = std::make_shared<std::atomic<Cluster>>(Cluster::unknown);
  }
};

/// Errc::invalid says what is wrong with the target.
Result<Place> make_place(const Target& target);

}  // namespace dlock::mysql
