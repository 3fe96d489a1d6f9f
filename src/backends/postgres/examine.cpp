#include "backends/postgres/examine.hpp"

#include <algorithm>
#include <array>

#include "backends/postgres/connection.hpp"
#include "backends/postgres/database.hpp"
#include "backends/postgres/text.hpp"
#include "backends/sql/examination.hpp"
#include "util/host.hpp"
#include "util/text.hpp"

namespace dlock::postgres {
namespace {

using sql::Reply;
using Look = std::optional<Seen>;

constexpr long long kFewConnections = 20;

// Each row is a name and a value.
constexpr const char* kAsked =
    "SELECT name, setting FROM pg_catalog.pg_settings WHERE name IN ('server_version',"
    " 'max_connections', 'superuser_reserved_connections', 'fsync', 'full_page_writes',"
    " 'log_lock_waits');"
    "SELECT '@user', current_user UNION ALL SELECT '@standby', pg_is_in_recovery()::text"
    " UNION ALL SELECT '@tls', COALESCE((SELECT version || ', ' || cipher FROM"
    " pg_catalog.pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl), '')"
    " UNION ALL SELECT '@connections', count(*)::text FROM pg_catalog.pg_stat_activity"
    " WHERE datid IS NOT NULL AND COALESCE(backend_type, 'client backend') = 'client backend'"
    " UNION ALL SELECT '@limit', (SELECT rolconnlimit::text FROM pg_catalog.pg_roles"
    " WHERE rolname = current_user)"
    " UNION ALL SELECT '@others', count(*)::text FROM pg_catalog.pg_stat_user_tables"
    " WHERE relname NOT IN ({tables})"
    " UNION ALL SELECT '@create', has_schema_privilege('public', 'CREATE')::text"
    " UNION ALL SELECT '@identity', (SELECT oid::text FROM pg_catalog.pg_database WHERE datname ="
    " current_database()) || ' ' || pg_postmaster_start_time()";

// What is known of one server.
struct Facts : sql::ServerFacts {
  using Place = postgres::Place;
  using Method = postgres::Method;
  static constexpr sql::Words kWords{
      "postgres-connect",
      "systemctl status postgresql    # on that machine; user and rights: man dlock-postgres",
      "postgres-primaries"};
  static std::span<const Check<Facts>> checks();

  std::shared_ptr<const Place> place;
  Method method = Method::table;

  static auto open(const std::shared_ptr<const Place>& at, Deadline deadline, Cancel cancel) {
    return Connection::open(at, deadline, cancel);
  }
  Result<void> ask_all(Deadline deadline, Cancel cancel);
  void look_at_tables(sql::Session& session, Deadline deadline, Cancel cancel);

  std::string client() const {
    const HostPort& host = place->hosts[0];
    return "psql -h " + util::in_shell(place->socket.empty() ? host.host : place->directory) +
           " -p " + std::to_string(host.port) + " -U postgres -d " +
           util::in_shell(place->database);
  }
  bool takes_writes() const { return told("@standby") == "false"; }
  std::string identity() const { return told("@identity"); }
  static bool is_refused() { return false; }
  std::vector<const Table*> needed(const Tables& names) const {
    std::vector<const Table*> out;
    for (const Table* table : names.all()) {
      if (table != &names.rows || method == Method::row) out.push_back(table);
    }
    return out;
  }
  std::string schema() const {
    return "dlock backends --schema postgres --prefix " + util::in_shell(place->prefix) + " | {}";
  }
  std::string grants() const {
    const Tables names(place->prefix);
    std::string on;
    for (const Table* table : needed(names)) on += (on.empty() ? "" : ", ") + table->name;
    return client() + " -c " +
           util::in_shell_quotes("GRANT SELECT, INSERT, UPDATE, DELETE ON " + on + " TO \"" +
                                 told("@user") + '"');
  }
  static std::string demote() {
    return "stop the one that was the primary before, and make it a standby again";
  }
  std::string trace_of(const std::string& table, std::string_view key) const {
    const bool has_method = table != Tables(place->prefix).rows.name;
    return "name = " + literal(key) +
           (has_method ? " AND method = '" + std::string(method_name(method)) + '\'' : "");
  }
};

Look server(const Facts& facts) {
  const std::string address = facts.ends.there.empty() ? "" : ", address " + facts.ends.there;
  return Seen{facts.told("server_version") + ", user " + facts.told("@user") + address};
}

Look round_trip(const Facts& facts) { return facts.round_trips.seen(facts.ttl); }

Look clock(const Facts& facts) { return clock_seen(facts.ahead); }

Look tls(const Facts& facts) {
  const std::string cipher = facts.told("@tls");
  if (!cipher.empty()) return Seen{cipher};
  if (!facts.ends.leaves_machine()) return std::nullopt;
  return Seen{"no TLS", Severity::note};
}

Look standby(const Facts& facts) {
  if (facts.takes_writes()) return Seen{"takes writes"};
  if (facts.has_primary) return Seen{"standby, read-only"};
  return Seen{"standby, read-only", Severity::fail};
}

Look connections(const Facts& facts) {
  const long long most =
      facts.number("max_connections") - facts.number("superuser_reserved_connections");
  const long long used = facts.number("@connections");
  const long long limit = facts.number("@limit");  // of this user; -1: none
  const bool is_limited = limit >= 0 && limit < kFewConnections;
  const std::string more = is_limited
                               ? "ALTER ROLE \"" + facts.told("@user") + "\" CONNECTION LIMIT 500"
                               : "ALTER SYSTEM SET max_connections = " +
                                     std::to_string(facts.number("max_connections") + 400);
  return Seen{
      std::to_string(used) + " of " + std::to_string(most) + " in use" +
          (limit < 0 ? "" : "; this user may have " + std::to_string(limit)),
      most - used < kFewConnections || is_limited ? Severity::warn : Severity::ok,
      "{} -c " + util::in_shell_quotes(more) + (is_limited ? "" : "    # and restart the server")};
}

Look durability(const Facts& facts) {
  const std::string fsync = facts.told("fsync");
  const std::string pages = facts.told("full_page_writes");
  const bool is_safe = fsync == "on" && pages == "on";
  return Seen{"fsync " + fsync + ", full_page_writes " + pages,
              is_safe ? Severity::ok : Severity::warn};
}

// One that waits has a snapshot, and nothing that it could see is cleaned up.
Look vacuum(const Facts& facts) {
  if (!facts.takes_writes()) return std::nullopt;
  const long long others = facts.number("@others");
  if (others == 0) return Seen{"no other tables in this database"};
  // What other programs lock is where they are.
  return Seen{std::to_string(others) + " other tables in this database", Severity::note,
              facts.method == Method::row
                  ? "let no job wait for hours, nor hold a row: ?pg_advisory, man dlock-postgres"
                  : ""};
}

Look log(const Facts& facts) {
  if (facts.told("log_lock_waits") != "on") return std::nullopt;
  return Seen{"log_lock_waits is on", Severity::note,
              "{} -c 'ALTER ROLE \"" + facts.told("@user") + "\" SET log_lock_waits = off'"};
}

Look tables(const Facts& facts) {
  if (!facts.takes_writes()) return std::nullopt;
  return sql::seen_tables(facts, facts.schema(), facts.grants());
}

constexpr std::array kChecks{
    Check<Facts>{"postgres-server", server},
    Check<Facts>{"postgres-round-trip", round_trip, kWhySlow, "use a longer --ttl"},
    Check<Facts>{"postgres-clock", clock, kWhyClock, kFixClock},
    Check<Facts>{"postgres-tls", tls, "Without TLS, locks can be read and changed on their way.",
                 "use ?sslmode=verify-full: man dlock-postgres"},
    Check<Facts>{"postgres-standby", standby, "No job acquires a lock here.",
                 "name the primary in the URL, or promote this one: {} -c 'SELECT pg_promote()'"},
    Check<Facts>{"postgres-connections", connections,
                 "Each holder and each waiter needs a connection, and two with postgres-row."},
    Check<Facts>{"postgres-durability", durability,
                 "A crash can undo the latest locks and done-marks, and a job runs twice.",
                 "{} -c 'ALTER SYSTEM SET fsync = on' -c 'ALTER SYSTEM SET full_page_writes = on' "
                 "-c 'SELECT pg_reload_conf()'"},
    Check<Facts>{"postgres-vacuum", vacuum,
                 "While a job waits, or holds a lock of postgres-row, VACUUM cleans nothing in "
                 "this database.",
                 "for jobs that wait for hours, use a database of its own: {} -c 'CREATE DATABASE "
                 "dlock'"},
    Check<Facts>{"postgres-log", log,
                 "Each job that waits writes an entry of several lines each second."},
    Check<Facts>{
        "postgres-tables", tables,
        "A run creates the tables that it needs, if the user may; until then, doctor tries no "
        "lock, or no done-mark.",
        "GRANT, ALTER or DROP as man dlock-postgres says, SET-UP"},
};

std::string asked_of(const Place& place) {
  const Tables names(place.prefix);
  std::string ours;
  for (const Table* table : names.all()) {
    ours += (ours.empty() ? "" : ", ") + literal(table->name.substr(table->name.find('.') + 1));
  }
  std::string text = kAsked;
  constexpr std::string_view kHole = "{tables}";
  return text.replace(text.find(kHole), kHole.size(), ours);
}

std::span<const Check<Facts>> Facts::checks() { return kChecks; }

void Facts::look_at_tables(sql::Session& session, Deadline deadline, Cancel cancel) {
  const Tables names(place->prefix);
  const auto all = needed(names);
  lacking = Severity::note;  // done-marks are not for everybody
  for (const Table* table : all) {
    const std::string name = literal(table->name);
    const Reply seen = session.ask(
        "SELECT has_table_privilege(" + name + ", 'SELECT') AND has_table_privilege(" + name +
            ", 'INSERT') AND has_table_privilege(" + name + ", 'UPDATE') AND has_table_privilege(" +
            name + ", 'DELETE') FROM (SELECT to_regclass(" + name +
            ") AS it) AS found WHERE it IS NOT NULL",
        deadline, cancel);
    if (!seen.ok() || seen.answers.front().rows.empty()) {
      add_missing(table->name, table != &names.records);
      continue;
    }
    const bool may_write = sql::text(sql::first_row(seen.answers.front()), 0) == "t";
    if (may_write) {
      tables.push_back(table->name);
      continue;
    }
    lacks += (lacks.empty() ? "may not write to " : ", ") + table->name;
    if (table != &names.records) lacking = Severity::fail;
  }
  may_create = told("@create") == "true";
  const auto fits = check_tables(session, *place, all, deadline, cancel);
  if (!fits) unfit = fits.error();
}

Result<void> Facts::ask_all(Deadline deadline, Cancel cancel) {
  const auto opened = open(place, deadline, cancel);
  if (!opened) return opened.error();
  Connection& session = *opened.value();
  ends = util::ends_of(session.fd());
  if (auto ok = measure(session, kNowMs, deadline, cancel); !ok) return ok;
  const Reply asked = session.ask(asked_of(*place), deadline, cancel);
  if (!asked.ok()) return *asked.error;
  tell(asked);
  if (takes_writes()) look_at_tables(session, deadline, cancel);
  return {};
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

}  // namespace dlock::postgres
