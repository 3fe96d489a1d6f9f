#include "backends/mysql/examine.hpp"

#include <algorithm>
#include <array>
#include <ctime>

#include "backends/mysql/connection.hpp"
#include "backends/mysql/database.hpp"
#include "backends/mysql/sql.hpp"
#include "backends/sql/examination.hpp"
#include "util/host.hpp"
#include "util/text.hpp"

namespace dlock::mysql {
namespace {

using sql::number_in;
using sql::Reply;
using Cluster = Place::Cluster;
using Look = std::optional<Seen>;

constexpr long long kFewConnections = 20;

// The rows of each answer are names and values.
constexpr const char* kAsked =
    "SHOW GLOBAL VARIABLES; SHOW STATUS; SELECT '@user', CURRENT_USER(); "
    "SELECT '@connection', CONNECTION_ID() & 4294967295; SELECT '@wait', @@SESSION.wait_timeout; "
    "SELECT '@limit', @@SESSION.max_user_connections";

// What is known of one server.
struct Facts : sql::ServerFacts {
  using Place = mysql::Place;
  using Method = mysql::Method;
  static constexpr sql::Words kWords{
      "mysql-connect",
      "systemctl status mariadb    # on that machine; user and rights: man dlock-mysql",
      "mysql-primaries"};
  static std::span<const Check<Facts>> checks();

  std::shared_ptr<const Place> place;
  Method method = Method::table;
  std::string connection;  // its number, as the greeting has it

  static auto open(const std::shared_ptr<const Place>& at, Deadline deadline, Cancel cancel) {
    return Connection::open(at, deadline, cancel);
  }
  Result<void> ask_all(Deadline deadline, Cancel cancel);
  void look_at_tables(sql::Session& session, Deadline deadline, Cancel cancel);

  std::string client() const {
    const HostPort& host = place->hosts[0];
    return "mariadb" +
           (place->socket.empty()
                ? " -h " + util::in_shell(host.host) + " -P " + std::to_string(host.port)
                : " -S " + util::in_shell(place->socket)) +
           " -u root -p " + util::in_shell(place->database);
  }
  bool takes_writes() const { return told("read_only") == "OFF" || told("read_only") == "0"; }
  bool logs() const { return told("log_bin") == "ON"; }
  // The same for the servers of a cluster, and for a server by each of its names.
  std::string identity() const {
    return is_alone() ? told("hostname") + ':' + told("port") + told("datadir") +
                            told("server_id") + told("server_uuid") + told("server_uid")
                      : told("wsrep_cluster_state_uuid") + told("group_replication_group_name");
  }
  bool is_alone() const { return *place->cluster == Cluster::no; }
  bool is_refused() const { return !is_alone() && method != Method::version; }
  std::string schema() const {
    return "dlock backends --schema mysql --prefix " + util::in_shell(place->prefix) + " | {}";
  }
  std::string user() const {  // `app`@`%`
    std::string out = told("@user");
    return '`' + out.replace(std::min(out.rfind('@'), out.size()), 1, "`@`") + '`';
  }
  // The tables that each run and dlock once need, also those that are missing.
  std::string grants() const {
    const Tables names(place->prefix);
    std::string text;
    for (const Table* table : names.all()) {
      if (table == &names.rows && method != Method::row) continue;
      text += "GRANT SELECT, INSERT, UPDATE, DELETE ON " + table->name + " TO " + user() + "; ";
    }
    return client() + " -e " + util::in_shell_quotes(text);
  }
  std::string demote() const {
    return "if this one is the standby: " + client() +
           " -e 'SET GLOBAL read_only = 1'    # and in its my.cnf";
  }
  std::string trace_of(const std::string& table, std::string_view key) const {
    const bool has_method = table != Tables(place->prefix).rows.name;
    return "name = " + literal(key) +
           (has_method ? " AND method = " + std::to_string(static_cast<int>(method)) : "");
  }
};

Look server(const Facts& facts) {
  const std::string address = facts.ends.there.empty() ? "" : ", address " + facts.ends.there;
  return Seen{facts.told("version") + " on " + facts.told("hostname") + ", user " +
              facts.told("@user") + address};
}

Look round_trip(const Facts& facts) { return facts.round_trips.seen(facts.ttl); }

Look clock(const Facts& facts) { return clock_seen(facts.ahead); }

// The certificate ends at a time such as "Nov 27 02:41:00 2036 GMT".
Look tls(const Facts& facts) {
  const std::string cipher = facts.told("Ssl_cipher");
  if (cipher.empty() && !facts.ends.leaves_machine()) return std::nullopt;
  if (cipher.empty()) return Seen{"no TLS", Severity::note};
  std::tm end{};
  const std::string until = facts.told("Ssl_server_not_after");
  if (::strptime(until.c_str(), "%b %d %T %Y", &end) == nullptr) return Seen{"TLS, " + cipher};
  const auto left = (::timegm(&end) - std::time(nullptr)) / 86'400;
  Seen seen = certificate_seen(static_cast<int>(left));
  if (facts.place->tls != Tls::verify) seen.level = Severity::ok;  // any certificate will do
  return seen;
}

Look proxy(const Facts& facts) {
  const std::string there = facts.told("@connection");
  if (there == facts.connection) return std::nullopt;
  return Seen{"a proxy: connection " + facts.connection + " is " + there + " on the server",
              Severity::fail};
}

Look read_only(const Facts& facts) {
  if (facts.takes_writes()) return Seen{"takes writes"};
  if (facts.has_primary) return Seen{"replica, read-only"};
  return Seen{"read-only", Severity::fail};
}

Look cluster(const Facts& facts) {
  if (facts.is_alone()) return std::nullopt;
  const bool is_galera = *facts.place->cluster == Cluster::galera;
  return Seen{is_galera ? "a Galera cluster of " + facts.told("wsrep_cluster_size")
                        : "a group with several primaries",
              facts.is_refused() ? Severity::fail : Severity::ok};
}

Look connections(const Facts& facts) {
  const long long most = facts.number("max_connections");
  const long long peak = facts.number("Max_used_connections");
  const long long limit = facts.number("@limit");  // of this user; 0: none
  const bool are_few = most - peak < kFewConnections || (limit > 0 && limit < kFewConnections);
  const std::string more = limit > 0 && limit < kFewConnections
                               ? "ALTER USER " + facts.user() + " WITH MAX_USER_CONNECTIONS 500"
                               : "SET GLOBAL max_connections = " + std::to_string(most + 500);
  return Seen{
      facts.told("Threads_connected") + " of " + std::to_string(most) + " in use, at most " +
          std::to_string(peak) + " so far" +
          (limit == 0 ? "" : "; this user may have " + std::to_string(limit)),
      are_few ? Severity::warn : Severity::ok,
      "{} -e " + util::in_shell_quotes(more) + "    # a limit of the server also in my.cnf"};
}

// Each session of dlock asks for 8 hours, and that of a holder for the TTL.
Look wait_timeout(const Facts& facts) {
  constexpr Millis kAskedFor{8 * 3'600'000};
  if (Millis{facts.number("@wait") * 1'000} >= std::min(facts.ttl, kAskedFor)) {
    return Seen{facts.told("wait_timeout") + " s; dlock sets its own"};
  }
  return Seen{facts.told("@wait") + " s, although dlock asked for more", Severity::warn};
}

Look binlog_format(const Facts& facts) {
  const std::string format = facts.told("binlog_format");
  if (!facts.logs() || format.empty()) return std::nullopt;
  return Seen{format, format == "STATEMENT" ? Severity::fail : Severity::ok};
}

// A crash undoes a commit that the binary log lacks.  What a server of a cluster has lost, the
// others have.
Look durability(const Facts& facts) {
  if (!facts.is_alone()) return std::nullopt;
  const std::string flush = facts.told("innodb_flush_log_at_trx_commit");
  const std::string sync = facts.logs() ? facts.told("sync_binlog") : "";
  return Seen{
      "innodb_flush_log_at_trx_commit " + flush + (sync.empty() ? "" : ", sync_binlog " + sync),
      (flush == "1" || flush == "3") && (sync.empty() || sync == "1") ? Severity::ok
                                                                      : Severity::warn};
}

Look tables(const Facts& facts) {
  if (!facts.takes_writes()) return std::nullopt;
  return sql::seen_tables(facts, facts.schema(), facts.grants());
}

constexpr std::array kChecks{
    Check<Facts>{"mysql-server", server},
    Check<Facts>{"mysql-round-trip", round_trip, kWhySlow, "use a longer --ttl"},
    Check<Facts>{"mysql-clock", clock, kWhyClock, kFixClock},
    Check<Facts>{
        "mysql-tls", tls,
        "Without TLS, locks can be read and changed on their way; with an old certificate, no "
        "job acquires a lock.",
        "use ?tls=verify, with a certificate that lasts: man dlock-mysql"},
    Check<Facts>{"mysql-proxy", proxy,
                 "A proxy shares connections between clients, and two jobs can hold one lock.",
                 "name the database server in the URL"},
    Check<Facts>{
        "mysql-read-only", read_only, "No job acquires a lock here.",
        "name the primary in the URL. Only if this is it, and replicates from no other: {} -e "
        "'SET GLOBAL read_only = 0'"},
    Check<Facts>{"mysql-cluster", cluster,
                 "Each of these servers knows its own locks only, so dlock refuses them.",
                 "use mysql-version:// in the URL of all jobs: man dlock-mysql, VARIANTS"},
    Check<Facts>{"mysql-connections", connections,
                 "Each holder and each waiter needs a connection, and two with mysql-row."},
    Check<Facts>{"mysql-wait-timeout", wait_timeout,
                 "The connection of a job ends while the job is well.",
                 "{} -e 'SET GLOBAL wait_timeout = 28800'    # and in the server's my.cnf"},
    Check<Facts>{"mysql-binlog-format", binlog_format,
                 "With this format, the server refuses what dlock writes.",
                 "{} -e 'SET GLOBAL binlog_format = ROW'    # and in the server's my.cnf"},
    Check<Facts>{"mysql-durability", durability,
                 "A crash can undo the latest locks and done-marks, and a job runs twice.",
                 "{} -e 'SET GLOBAL innodb_flush_log_at_trx_commit = 1, GLOBAL sync_binlog = 1'    "
                 "# and in the server's my.cnf"},
    Check<Facts>{
        "mysql-tables", tables,
        "A run creates the tables that it needs, if the user may; until then, doctor tries no "
        "lock, or no done-mark.",
        "GRANT, ALTER or DROP as man dlock-mysql says, SET-UP"},
};

std::span<const Check<Facts>> Facts::checks() { return kChecks; }

// PREPARE and an empty DELETE check the rights of a statement, and do nothing.
void Facts::look_at_tables(sql::Session& session, Deadline deadline, Cancel cancel) {
  const Tables names(place->prefix);
  for (const Table* table : names.all()) {
    if (table == &names.rows && method != Method::row) continue;
    const Reply seen = session.ask(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND "
        "table_name = " +
            literal(table->name),
        deadline, cancel);
    if (!seen.ok() || number_in(sql::last_answer(seen)) == 0) {
      add_missing(table->name, table != &names.records);
      continue;
    }
    tables.push_back(table->name);
    const auto kept = session.ask("DELETE FROM " + table->name + " WHERE FALSE", deadline, cancel);
    if (!kept.ok() && kept.error->code == Errc::denied) {
      lacks = "may not DELETE from " + table->name;
      lacking = table == &names.rows ? Severity::warn : Severity::fail;
    }
    const auto fits = check_table(session, *place, *table, deadline, cancel);
    if (!fits) unfit = fits.error();
  }
  may_create =
      session.ask("PREPARE dlock_create FROM '" + names.records.create + '\'', deadline, cancel)
          .ok();
}

Result<void> Facts::ask_all(Deadline deadline, Cancel cancel) {
  const auto opened = open(place, deadline, cancel);
  if (!opened) return opened.error();
  Connection& session = *opened.value();
  connection = std::to_string(session.id());
  ends = util::ends_of(session.fd());
  if (auto ok = measure(session, kNowMs, deadline, cancel); !ok) return ok;
  const Reply asked = session.ask(kAsked, deadline, cancel);
  if (!asked.ok()) return *asked.error;
  tell(asked);
  if (takes_writes()) look_at_tables(session, deadline, cancel);
  const Reply last = session.ask("DO 0", deadline, cancel);
  return last.ok() ? Result<void>() : *last.error;
}

}  // namespace

template <Method method>
Result<std::unique_ptr<Examination>> examine(const Target& target, Millis ttl) {
  auto place = make_place(target);
  if (!place) return place.error();
  return std::make_unique<sql::SqlExamination<Facts>>(std::move(*place), method, ttl);
}
template Result<std::unique_ptr<Examination>> examine<Method::table>(const Target&, Millis);
template Result<std::unique_ptr<Examination>> examine<Method::row>(const Target&, Millis);
template Result<std::unique_ptr<Examination>> examine<Method::version>(const Target&, Millis);

}  // namespace dlock::mysql
