#include "backends/mysql/examine.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <map>

#include "backends/mysql/connection.hpp"
#include "backends/mysql/database.hpp"
#include "backends/mysql/sql.hpp"
#include "core/checks.hpp"
#include "util/host.hpp"
#include "util/text.hpp"

namespace dlock::mysql {
namespace {

using sql::Answer;
using sql::number_in;
using sql::Reply;
using sql::Row;
using Cluster = Place::Cluster;
using Look = std::optional<Seen>;

constexpr long long kFewConnections = 20;

// The rows of each answer are names and values.
constexpr const char* kAsked =
    "SHOW GLOBAL VARIABLES; SHOW STATUS; SELECT '@user', CURRENT_USER(); "
    "SELECT '@connection', CONNECTION_ID() & 4294967295; SELECT '@wait', @@SESSION.wait_timeout; "
    "SELECT '@limit', @@SESSION.max_user_connections";

// What is known of one server.
struct Facts {
  std::string server;
  std::shared_ptr<const Place> place;  // with this host alone
  Method method = Method::table;
  Millis ttl{};
  std::optional<Error> error = {};
  bool has_primary = false;     // one of the servers takes writes
  std::string connection = {};  // its number, as the greeting has it
  util::Ends ends = {};
  RoundTrips round_trips = {};
  Millis ahead{0};
  Told told = {};                        // of variables and status, and by kAsked
  std::vector<std::string> tables = {};  // those that are there
  std::string missing = {};              // the others
  std::optional<Error> unfit = {};
  bool may_create = false;
  std::string kept = {};  // a table from which this user may not delete

  std::string client() const {
    const HostPort& host = place->hosts[0];
    return "mariadb" +
           (place->socket.empty()
                ? " -h " + util::in_shell(host.host) + " -P " + std::to_string(host.port)
                : " -S " + util::in_shell(place->socket)) +
           " -u root -p " + util::in_shell(place->database);
  }
  long long number(const std::string& name) const {
    return util::parse_int(told(name), 0, INT64_MAX).value_or(0);
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
  bool has_locks() const {
    return missing.empty() || missing == Tables(place->prefix).records.name;
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
  if (facts.unfit) return Seen{cannot_look("", facts.server, *facts.unfit).seen, Severity::fail};
  if (!facts.missing.empty() && facts.may_create) {
    return Seen{"missing: " + facts.missing, Severity::note, facts.schema()};
  }
  // The server does not tell a table that is missing from one to which the user has no right.
  if (!facts.missing.empty()) {
    return Seen{"missing, or not open to this user: " + facts.missing,
                facts.has_locks() ? Severity::warn : Severity::fail,
                facts.schema() + "; " + facts.grants()};
  }
  if (facts.kept.empty()) return Seen{"as dlock makes them"};
  return Seen{"may not DELETE from " + facts.kept,
              facts.kept == Tables(facts.place->prefix).rows.name ? Severity::warn : Severity::fail,
              facts.grants()};
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

// PREPARE and an empty DELETE check the rights of a statement, and do nothing.
void look_at_tables(sql::Session& session, Facts& facts, Deadline deadline, Cancel cancel) {
  const Tables names(facts.place->prefix);
  for (const Table* table : names.all()) {
    if (table == &names.rows && facts.method != Method::row) continue;
    const Reply seen = session.ask(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND "
        "table_name = " +
            literal(table->name),
        deadline, cancel);
    if (!seen.ok() || number_in(sql::last_answer(seen)) == 0) {
      facts.missing += (facts.missing.empty() ? "" : ", ") + table->name;
      continue;
    }
    facts.tables.push_back(table->name);
    const auto kept = session.ask("DELETE FROM " + table->name + " WHERE FALSE", deadline, cancel);
    if (!kept.ok() && kept.error->code == Errc::denied) facts.kept = table->name;
    const auto fits = check_table(session, *facts.place, *table, deadline, cancel);
    if (!fits) facts.unfit = fits.error();
  }
  facts.may_create =
      session.ask("PREPARE dlock_create FROM '" + names.records.create + '\'', deadline, cancel)
          .ok();
}

Result<void> ask_all(Facts& facts, Deadline deadline, Cancel cancel) {
  const auto opened = Connection::open(facts.place, deadline, cancel);
  if (!opened) return opened.error();
  Connection& connection = *opened.value();
  facts.connection = std::to_string(connection.id());
  facts.ends = util::ends_of(connection.fd());
  auto measured = facts.round_trips.measure(deadline, [&]() -> Result<void> {
    const Deadline start = Clock::now();
    const Reply now = connection.ask("SELECT " + std::string(kNowMs), deadline, cancel);
    if (!now.ok()) return *now.error;
    const Clock::duration took = Clock::now() - start;
    if (!facts.round_trips.is_fastest(took)) return {};
    const auto ahead = static_cast<std::int64_t>(number_in(now.answers[0]) - util::utc_now_ms());
    facts.ahead = Millis{ahead} + std::chrono::duration_cast<Millis>(took / 2);
    return {};
  });
  if (!measured) return measured;
  const Reply told = connection.ask(kAsked, deadline, cancel);
  if (!told.ok()) return *told.error;
  for (const Answer& answer : told.answers) {
    for (const Row& row : answer.rows) {
      if (row.size() == 2) facts.told.add(row[0].value_or(""), row[1].value_or(""));
    }
  }
  if (facts.takes_writes()) look_at_tables(connection, facts, deadline, cancel);
  const Reply last = connection.ask("DO 0", deadline, cancel);
  return last.ok() ? Result<void>() : *last.error;
}

class MysqlExamination final : public Examination {
 public:
  MysqlExamination(const Target& target, Place place, Method method, Millis ttl)
      : target_(target),
        place_(std::make_shared<Place>(std::move(place))),
        method_(method),
        ttl_(ttl) {}

  Findings look(Deadline deadline, Cancel cancel) override;
  bool may_try() const override {
    return primary_ && primary_->has_locks() && primary_->kept.empty() && !primary_->unfit &&
           !primary_->is_refused();
  }
  bool may_try_marks() const override { return primary_->missing.empty(); }
  std::string rights() const override { return primary_->grants(); }
  Result<void> remove_traces(std::string_view key, std::span<const std::string> owners,
                             Deadline deadline) override;

 private:
  const Target target_;
  const std::shared_ptr<const Place> place_;
  const Method method_;
  const Millis ttl_;
  std::optional<Facts> primary_;
};

Findings MysqlExamination::look(Deadline deadline, Cancel cancel) {
  auto servers = look_at_each(place_->hosts, [&](const HostPort& host) {
    Target target = target_;
    if (place_->hosts.size() > 1) target.url.hosts = {host};
    auto place = std::make_shared<Place>(std::move(*make_place(target)));
    Facts facts{place->shown, place, method_, ttl_};
    if (auto ok = ask_all(facts, deadline, cancel); !ok) facts.error = ok.error();
    return facts;
  });
  std::map<std::string, const Facts*> primaries;  // each once, also if it has several names
  for (const Facts& facts : servers) {
    if (facts.error || !facts.takes_writes()) continue;
    primaries.emplace(facts.identity(), &facts);
    if (!primary_) primary_ = facts;
  }
  for (Facts& facts : servers) facts.has_primary = primary_.has_value();
  Findings out;
  check_each<Facts>(
      kChecks, servers, "mysql-connect",
      "systemctl status mariadb    # on that machine; user and rights: man dlock-mysql",
      primary_.has_value(), out);
  for (const auto& [identity, facts] : primaries) {
    if (primaries.size() == 1) break;
    out.push_back({"mysql-primaries", Severity::fail, facts->server,
                   "one of " + std::to_string(primaries.size()) + " servers that take writes",
                   "Each of them grants the same lock, and two jobs run at once.",
                   "if this one is the standby: " + facts->client() +
                       " -e 'SET GLOBAL read_only = 1'    # and in its my.cnf"});
  }
  return out;
}

Result<void> MysqlExamination::remove_traces(std::string_view key, std::span<const std::string>,
                                             Deadline deadline) {
  const auto opened = Connection::open(place_, deadline, Cancel());
  if (!opened) return opened.error();
  const std::string method = " AND method = " + std::to_string(static_cast<int>(method_));
  std::string text;
  for (const std::string& table : primary_->tables) {
    const bool has_method = table != Tables(place_->prefix).rows.name;
    text += "DELETE FROM " + table + " WHERE name = " + literal(key) + (has_method ? method : "") +
            "; ";
  }
  const Reply reply = opened.value()->insist(text, deadline, Cancel());
  return reply.ok() ? Result<void>() : *reply.error;
}

}  // namespace

template <Method method>
Result<std::unique_ptr<Examination>> examine(const Target& target, Millis ttl) {
  auto place = make_place(target);
  if (!place) return place.error();
  return std::make_unique<MysqlExamination>(target, std::move(*place), method, ttl);
}
template Result<std::unique_ptr<Examination>> examine<Method::table>(const Target&, Millis);
template Result<std::unique_ptr<Examination>> examine<Method::row>(const Target&, Millis);
template Result<std::unique_ptr<Examination>> examine<Method::version>(const Target&, Millis);

}  // namespace dlock::mysql
