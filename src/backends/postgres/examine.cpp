#include "backends/postgres/examine.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "backends/postgres/connection.hpp"
#include "backends/postgres/database.hpp"
#include "backends/postgres/text.hpp"
#include "core/checks.hpp"
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
    " 'synchronous_standby_names');"
    "SELECT '@user', current_user UNION ALL SELECT '@standby', pg_is_in_recovery()::text"
    " UNION ALL SELECT '@tls', COALESCE((SELECT version || ', ' || cipher FROM"
    " pg_catalog.pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl), '')"
    " UNION ALL SELECT '@connections', count(*)::text FROM pg_catalog.pg_stat_activity"
    " WHERE backend_type = 'client backend' OR backend_type IS NULL"
    " UNION ALL SELECT '@limit', (SELECT rolconnlimit::text FROM pg_catalog.pg_roles"
    " WHERE rolname = current_user)"
    " UNION ALL SELECT '@others', count(*)::text FROM pg_catalog.pg_stat_user_tables"
    " WHERE relname NOT IN ({tables})"
    " UNION ALL SELECT '@create', has_schema_privilege('public', 'CREATE')::text"
    " UNION ALL SELECT '@identity', (SELECT oid::text FROM pg_catalog.pg_database WHERE datname ="
    " current_database()) || ' ' || pg_postmaster_start_time()";

// What is known of one server.
struct Facts {
  std::string server;
  std::shared_ptr<const Place> place;  // with this host alone
  Method method = Method::table;
  Millis ttl{};
  std::optional<Error> error = {};
  bool has_primary = false;  // one of the servers takes writes
  util::Ends ends = {};
  RoundTrips round_trips = {};
  Millis ahead{0};
  Told told = {};
  std::vector<std::string> tables = {};  // those that are there
  std::string missing = {};              // the others
  std::optional<Error> unfit = {};
  std::string kept = {};  // a table that this user may not write to

  std::string client() const {
    const HostPort& host = place->hosts[0];
    return "psql -h " + util::in_shell(place->socket.empty() ? host.host : place->socket) + " -p " +
           std::to_string(host.port) + " -U postgres -d " + util::in_shell(place->database);
  }
  long long number(const std::string& name) const {
    return util::parse_int(told(name), -1, INT64_MAX).value_or(0);
  }
  bool takes_writes() const { return told("@standby") == "false"; }
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
  bool has_locks() const {
    return missing.empty() || missing == Tables(place->prefix).records.name;
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
  return Seen{std::to_string(others) + " other tables in this database", Severity::note};
}

Look tables(const Facts& facts) {
  if (!facts.takes_writes()) return std::nullopt;
  if (facts.unfit) return Seen{cannot_look("", facts.server, *facts.unfit).seen, Severity::fail};
  if (!facts.missing.empty() && facts.told("@create") == "true") {
    return Seen{"missing: " + facts.missing, Severity::note, facts.schema()};
  }
  if (!facts.missing.empty()) {
    return Seen{"missing: " + facts.missing, facts.has_locks() ? Severity::warn : Severity::fail,
                facts.schema() + "; " + facts.grants()};
  }
  if (facts.kept.empty()) return Seen{"as dlock makes them"};
  return Seen{"may not write to " + facts.kept, Severity::fail, facts.grants()};
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
    Check<Facts>{
        "postgres-tables", tables,
        "A run creates the tables that it needs, if the user may; until then, doctor tries no "
        "lock, or no done-mark.",
        "GRANT, ALTER or DROP as man dlock-postgres says, SET-UP"},
};

void look_at_tables(sql::Session& session, Facts& facts, Deadline deadline, Cancel cancel) {
  const Tables names(facts.place->prefix);
  const auto needed = facts.needed(names);
  for (const Table* table : needed) {
    const std::string name = literal(table->name);
    const Reply seen = session.ask(
        "SELECT has_table_privilege(" + name + ", 'SELECT') AND has_table_privilege(" + name +
            ", 'INSERT') AND has_table_privilege(" + name + ", 'UPDATE') AND has_table_privilege(" +
            name + ", 'DELETE') FROM (SELECT to_regclass(" + name +
            ") AS it) AS found WHERE it IS NOT NULL",
        deadline, cancel);
    if (!seen.ok() || seen.answers.front().rows.empty()) {
      facts.missing += (facts.missing.empty() ? "" : ", ") + table->name;
      continue;
    }
    facts.tables.push_back(table->name);
    if (sql::text(sql::first_row(seen.answers.front()), 0) != "t") facts.kept = table->name;
  }
  const auto fits = check_tables(session, *facts.place, needed, deadline, cancel);
  if (!fits) facts.unfit = fits.error();
}

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

Result<void> ask_all(Facts& facts, Deadline deadline, Cancel cancel) {
  const auto opened = Connection::open(facts.place, deadline, cancel);
  if (!opened) return opened.error();
  Connection& connection = *opened.value();
  facts.ends = util::ends_of(connection.fd());
  auto measured = facts.round_trips.measure(deadline, [&]() -> Result<void> {
    const Deadline start = Clock::now();
    const Reply now = connection.ask("SELECT " + std::string(kNowMs), deadline, cancel);
    if (!now.ok()) return *now.error;
    const Clock::duration took = Clock::now() - start;
    if (!facts.round_trips.is_fastest(took)) return {};
    const auto ahead =
        static_cast<std::int64_t>(sql::number_in(now.answers[0]) - util::utc_now_ms());
    facts.ahead = Millis{ahead} + std::chrono::duration_cast<Millis>(took / 2);
    return {};
  });
  if (!measured) return measured;
  const Reply told = connection.ask(asked_of(*facts.place), deadline, cancel);
  if (!told.ok()) return *told.error;
  for (const sql::Answer& answer : told.answers) {
    for (const sql::Row& row : answer.rows) {
      if (row.size() == 2) facts.told.add(row[0].value_or(""), row[1].value_or(""));
    }
  }
  if (facts.takes_writes()) look_at_tables(connection, facts, deadline, cancel);
  return {};
}

class PostgresExamination final : public Examination {
 public:
  PostgresExamination(const Target& target, Place place, Method method, Millis ttl)
      : target_(target),
        place_(std::make_shared<Place>(std::move(place))),
        method_(method),
        ttl_(ttl) {}

  Findings look(Deadline deadline, Cancel cancel) override;
  bool may_try() const override {
    return primary_ && primary_->has_locks() && primary_->kept.empty() && !primary_->unfit;
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

Findings PostgresExamination::look(Deadline deadline, Cancel cancel) {
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
    primaries.emplace(facts.told("@identity"), &facts);
    if (!primary_) primary_ = facts;
  }
  for (Facts& facts : servers) facts.has_primary = primary_.has_value();
  Findings out;
  check_each<Facts>(
      kChecks, servers, "postgres-connect",
      "systemctl status postgresql    # on that machine; user and rights: man dlock-postgres",
      primary_.has_value(), out);
  for (const auto& [identity, facts] : primaries) {
    if (primaries.size() == 1) break;
    out.push_back({"postgres-primaries", Severity::fail, facts->server,
                   "one of " + std::to_string(primaries.size()) + " servers that take writes",
                   "Each of them grants the same lock, and two jobs run at once.",
                   "stop the one that was the primary before, and make it a standby again"});
  }
  return out;
}

Result<void> PostgresExamination::remove_traces(std::string_view key, std::span<const std::string>,
                                                Deadline deadline) {
  const auto opened = Connection::open(place_, deadline, Cancel());
  if (!opened) return opened.error();
  const std::string method = " AND method = '" + std::string(method_name(method_)) + '\'';
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
  return std::make_unique<PostgresExamination>(target, std::move(*place), method, ttl);
}
template Result<std::unique_ptr<Examination>> examine<Method::table>(const Target&, Millis);
template Result<std::unique_ptr<Examination>> examine<Method::row>(const Target&, Millis);

}  // namespace dlock::postgres
