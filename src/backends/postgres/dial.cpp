// libpq would block while it asks the name server, so it is given addresses; the name is for the
// certificate and for .pgpass.  What the URL does not say, libpq has from its environment and its
// files, as for psql.
#include "backends/postgres/dial.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

#include "backends/postgres/errors.hpp"
#include "backends/sql/servers.hpp"
#include "util/poll.hpp"
#include "util/resolve.hpp"
#include "util/text.hpp"

namespace dlock::postgres {
namespace {

constexpr int kOldest = 140'000;  // idle_session_timeout

struct Settings {
  std::vector<std::pair<std::string, std::string>> all;

  void add(const char* name, const std::string& value) {
    if (!value.empty()) all.emplace_back(name, value);
  }
};

bool is_readable(const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }

// As psql: ~/.postgresql/root.crt; and where there is none, whom this machine trusts.
std::string root_certificates(const Place& place) {
  if (!place.sslrootcert.empty() || !place.verifies()) return place.sslrootcert;
  const char* const home = std::getenv("HOME");
  if (std::getenv("PGSSLROOTCERT") != nullptr ||
      (home != nullptr && is_readable(std::string(home) + "/.postgresql/root.crt"))) {
    return "";
  }
  return sql::trusted_cas();
}

Settings settings_of(const Place& place, const HostPort& host, const std::string& addresses,
                     std::size_t count) {
  const auto repeated = [count](const std::string& one) {
    std::string out = one;
    for (std::size_t i = 1; i < count; ++i) out += ',' + one;
    return out;
  };
  Settings out;
  out.add("host", place.socket.empty() ? repeated(host.host) : place.directory);
  out.add("hostaddr", addresses);
  out.add("port", std::to_string(host.port));
  out.add("user", place.user);
  out.add("password", place.password);
  out.add("dbname", place.database);
  out.add("sslmode", place.sslmode);
  out.add("sslrootcert", root_certificates(place));
  out.add("sslcert", place.sslcert);
  out.add("sslkey", place.sslkey);
  out.add("application_name", "dlock");
  // Kerberos would be asked for tickets before each connection.
  if (std::getenv("PGGSSENCMODE") == nullptr) out.add("gssencmode", "disable");
  out.add("keepalives_idle", "60");
  out.add("keepalives_interval", "20");
  out.add("keepalives_count", "3");
  return out;
}

Result<std::vector<util::SocketAddress>> resolve(const HostPort& host, const std::string& server,
                                                 Deadline deadline, Cancel cancel) {
  auto found = util::resolve(host.host, host.port, deadline, cancel.fd());
  switch (found.end) {
    case util::Resolution::End::found:
      return std::move(found.addresses);
    case util::Resolution::End::cancelled:
      return Error{Errc::cancelled, server + ": stopped connecting"};
    case util::Resolution::End::timed_out:
      return Error{Errc::unreachable, server + ": the name server does not answer"};
    case util::Resolution::End::failed:
      break;
  }
  return Error{Errc::unreachable, server + ": " + found.why};
}

// What libpq goes by, from wherever it has it.
std::string setting_in_force(const Library& library, PGconn* line, std::string_view name) {
  PQconninfoOption* const all = library.PQconninfo(line);
  std::string out;
  for (const PQconninfoOption* it = all; it != nullptr && it->keyword != nullptr; ++it) {
    if (it->keyword == name && it->val != nullptr) out = it->val;
  }
  library.PQconninfoFree(all);
  return out;
}

Result<void> shake_hands(const Library& library, PGconn* line, const std::string& server,
                         const Place& place, Deadline deadline, Cancel cancel) {
  const Deadline start = Clock::now();
  PostgresPollingStatusType wants = PGRES_POLLING_WRITING;
  while (wants != PGRES_POLLING_OK) {
    if (wants == PGRES_POLLING_FAILED) {
      if (library.PQconnectionNeedsPassword(line) != 0) {
        return Error{Errc::denied, server + ": it asks for the password of user " +
                                       util::in_quotes(place.user) +
                                       "; use --password-file FILE, or .pgpass"};
      }
      return connect_error_of(library.PQerrorMessage(line), server, place);
    }
    const short events = wants == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    std::array<pollfd, 2> fds{{{library.PQsocket(line), events, 0}, {cancel.fd(), POLLIN, 0}}};
    util::poll(fds, deadline);
    if (fds[1].revents != 0) return Error{Errc::cancelled, server + ": stopped connecting"};
    if (fds[0].revents == 0 || Clock::now() >= deadline) {
      return Error{Errc::unreachable, server + ": no answer" + sql::within(start, deadline) +
                                          "; is this a PostgreSQL server?"};
    }
    wants = library.PQconnectPoll(line);
  }
  return {};
}

}  // namespace

Result<Line> dial(const Library& library, Place& place, const HostPort& host, Deadline deadline,
                  Cancel cancel) {
  const std::string server = place.shown_host(host);
  std::string addresses;
  std::size_t count = 0;
  if (place.socket.empty()) {
    const auto found = resolve(host, server, deadline, cancel);
    if (!found) return found.error();
    for (const util::SocketAddress& address : found.value()) {
      addresses += (count++ == 0 ? "" : ",") + util::numeric_host(address);
    }
  }
  const Settings settings = settings_of(place, host, addresses, count);
  std::vector<const char*> names;
  std::vector<const char*> values;
  for (const auto& [name, value] : settings.all) {
    names.push_back(name.c_str());
    values.push_back(value.c_str());
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  Line line(library.PQconnectStartParams(names.data(), values.data(), 0), Hangup{&library});
  if (!line) return Error{Errc::unreachable, server + ": out of memory"};
  place.user = setting_in_force(library, line.get(), "user");
  if (library.PQstatus(line.get()) == CONNECTION_BAD) {
    return connect_error_of(library.PQerrorMessage(line.get()), server, place);
  }
  library.PQsetErrorVerbosity(line.get(), PQERRORS_VERBOSE);
  library.PQsetNoticeReceiver(
      line.get(), [](void*, const PGresult*) {}, nullptr);
  auto ok = shake_hands(library, line.get(), server, place, deadline, cancel);
  if (!ok) return ok.error();
  if (library.PQserverVersion(line.get()) < kOldest) {
    return Error{Errc::unsupported, server + ": it is older than PostgreSQL 14"};
  }
  if (library.PQsslInUse(line.get()) == 0 &&
      setting_in_force(library, line.get(), "sslmode") == "prefer") {
    sql::warn_without_tls(
        server, library.PQsocket(line.get()),
        "?sslmode=verify-full in the URL asks for TLS, ?sslmode=disable accepts that");
  }
  library.PQsetnonblocking(line.get(), 1);
  library.PQenterPipelineMode(line.get());
  return line;
}

}  // namespace dlock::postgres
