// How a database with several servers is connected to, and what is said when that fails.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/sql/session.hpp"
#include "core/url.hpp"

namespace dlock::sql {

/// Of several failures: each is told, and the one that the operator can do something about counts.
Error merged(const std::vector<Error>& failures);

/// " within 5s": what went by between setting the deadline and `start` is rounded away.
std::string within(Deadline start, Deadline deadline);

/// What a server has said, on one line and without the password; without quotes.
std::string shown_text(std::string_view text, std::string_view password);

/// `says` with %u, the user, %d, the database, and %p, the prefix of the tables, filled in.
std::string filled(std::string_view says, const std::string& user, const std::string& database,
                   const std::string& prefix);

/// The file with the CAs that this machine trusts; "" if it has none that can be read.
std::string trusted_cas();

/// Warns, once for each server, if what is said over this socket leaves the machine.
void warn_without_tls(const std::string& server, int socket, const std::string& advice);

/// A connection to the first of `hosts` that takes writes; to the only one, whatever that does. The
/// one that it was last is tried first.  All have until `deadline`, of which each gets an equal
/// share of what those before it have left; no host has more than `most`.  `dial(host, deadline)`
/// connects.
template <class Connection, class Dial>
Result<std::unique_ptr<Connection>> open_primary(const std::vector<HostPort>& hosts,
                                                 std::atomic<std::size_t>& primary, Millis most,
                                                 std::string_view writable, Deadline deadline,
                                                 Cancel cancel, Dial dial) {
  std::vector<Error> failures;
  const std::size_t first = primary;
  for (std::size_t tried = 0; tried < hosts.size(); ++tried) {
    const std::size_t number = (first + tried) % hosts.size();
    const Deadline begun = Clock::now();
    const auto share = (deadline - begun) / static_cast<int>(hosts.size() - tried);
    const Deadline its = std::min(begun + share, after(begun, most));
    Result<std::unique_ptr<Connection>> connection = dial(hosts[number], its);
    if (!connection) {
      failures.push_back(connection.error());
      if (connection.error().code == Errc::cancelled) return connection.error();
      if (Clock::now() >= deadline) break;
      continue;
    }
    if (hosts.size() == 1) return connection;
    Session& session = **connection;
    const Reply reply = session.ask("SELECT " + std::string(writable), its, cancel);
    if (!reply.ok()) {
      failures.push_back(*reply.error);
      if (reply.error->code == Errc::cancelled) return *reply.error;
    } else if (number_in(reply.answers.at(0)) == 1) {
      primary = number;
      return connection;
    } else {
      failures.push_back(no_primary(session.server()));
    }
  }
  return merged(failures);
}

}  // namespace dlock::sql
