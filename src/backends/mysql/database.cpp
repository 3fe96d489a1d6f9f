// Names.   A session lock (GET_LOCK) has a name of at most 64 printable characters, for the whole
//          server.  RELEASE_LOCK undoes one GET_LOCK only, so a name that the session has is not
//          taken again.
// Cluster. Of servers that all take writes (Galera, a replication group with several primaries),
//          each knows its own session locks only.  dlock uses none there (see heartbeats.hpp), and
//          only mysql-version works.  With one primary, it does the same as mysql-table.
#include "backends/mysql/database.hpp"

#include <algorithm>
#include <array>

#include "backends/mysql/connection.hpp"
#include "backends/mysql/sql.hpp"
#include "backends/mysql/texts.hpp"
#include "backends/sql/heartbeats.hpp"
#include "util/hash.hpp"

namespace dlock::mysql {
namespace {

using sql::Heartbeats;

constexpr std::string_view kOwn = "dlock.";
constexpr std::string_view kRow = "dlock.row.";
constexpr std::string_view kGate = "dlock.gate.";
constexpr std::size_t kLongestName = 64;

std::string in_hex(std::uint64_t number) {
  std::array<char, 17> out{};
  std::snprintf(out.data(), out.size(), "%016llx", static_cast<unsigned long long>(number));
  return out.data();
}

// MySQL refuses any other name (3057); a row that dlock has not written may have such an owner.
std::string session_lock(std::string_view prefix, std::string_view owner) {
  const bool is_name =
      owner.size() + prefix.size() <= kLongestName &&
      std::all_of(owner.begin(), owner.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return literal(std::string(prefix) + (is_name ? std::string(owner) : in_hex(util::hash(owner))));
}

std::string session_of_row(std::string_view prefix) {
  // Any bytes are a name in latin1.
  return "IS_USED_LOCK(CONCAT('" + std::string(prefix) + "', CONVERT(LEFT(owner, " +
         std::to_string(kLongestName - prefix.size()) + ") USING latin1)))";
}

std::string micros(Millis time) { return std::to_string(time.count() * 1'000); }

sql::Values session_locks() {
  return {
      {"session", session_of_row(kOwn)},
      {"own_session", "IS_USED_LOCK({own})"},
      {"other_session", "NULLIF({own_session}, CONNECTION_ID())"},
      {"take_own", "IF({own_session} <=> CONNECTION_ID(), 1, GET_LOCK({own}, 0))"},
      {"release_own", "RELEASE_LOCK({own})"},
      {"take_gate",
       "IF(IS_USED_LOCK({gate}) <=> CONNECTION_ID(), 1, GET_LOCK({gate}, {gate_seconds}))"},
      {"release_gate", "RELEASE_LOCK({gate})"},
      {"is_ours", "(expires_at > {now} OR {has_name} AND {own_session} = CONNECTION_ID())"},
      {"is_there", "(expires_at IS NULL OR expires_at > {now} OR {own_session} IS NOT NULL)"},
      {"is_in_way", "role = 'holder'"},
      {"waiter_expiry", "NULL"},
      {"is_gone", "{session} IS NULL"},
      {"waiter_is_gone", "{is_gone}"},
      {"waiter_silence", "3"},
  };
}

sql::Values no_session_locks() {
  return {
      {"session", "NULL"},
      {"waiter_silence", "28800"},
      {"is_gone",
       "expires_at < {now} - INTERVAL " + micros(Heartbeats::kMostSkew) + " MICROSECOND"},
      {"waiter_is_gone", "TRUE"},  // by the clock of the client that says so
      {"own_session", "NULL"},
      {"other_session", "NULL"},
      {"take_own", "1"},
      {"release_own", "NULL"},
      {"take_gate", "1"},
      {"release_gate", "NULL"},
      {"is_ours", "TRUE"},
      {"is_there", "(expires_at IS NULL OR expires_at > {now} - INTERVAL " +
                       micros(Heartbeats::kMostSkew) + " MICROSECOND)"},
      {"is_in_way", "role <> 'broken'"},
      {"waiter_expiry", "{now} + INTERVAL " + micros(sql::kWaiterLease) + " MICROSECOND"},
  };
}

sql::Values values_of(const Place& place, Method method) {
  const Tables tables(place.prefix);
  return {
      {"keys", tables.keys.name},
      {"locks", tables.locks.name},
      {"rows", tables.rows.name},
      {"records", tables.records.name},
      {"method", std::to_string(static_cast<int>(method))},
      {"all_methods", "0"},
      {"now", "UTC_TIMESTAMP(6)"},
      {"now_ms", kNowMs},
      {"written_ms", "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', written_at) DIV 1000"},
      {"writable", kWritable},
      {"expiry", "{now} + INTERVAL {ttl} MICROSECOND"},
      {"reason_expiry", "{now} + INTERVAL {kept} MICROSECOND"},
      {"columns",
       "owner, role, name, mode, slots, slot, fence, TIMESTAMPDIFF(MICROSECOND, since, {now}), "
       "TIMESTAMPDIFF(MICROSECOND, {now}, expires_at), expires_at, {session}, record"},
      {"row_session", method == Method::row ? "IS_USED_LOCK({row})" : "NULL"},
      {"take_row", "GET_LOCK({row}, 0)"},
      {"row_patience", "10"},
      {"row_patience_once", "1"},
      {"row_silence", "wait_timeout = {silence}"},
      {"keep_row", "SET SESSION {row_silence}"},
      {"for_update", "FOR UPDATE"},
      {"for_share", "LOCK IN SHARE MODE"},
      {"free_row", "ROLLBACK"},
      {"risk",
       "IF(@@GLOBAL.innodb_flush_log_at_trx_commit = 0, "
       "'innodb_flush_log_at_trx_commit=0', NULL)"},
  };
}

sql::Values joined(sql::Values values, const sql::Values& more) {
  values.insert(values.end(), more.begin(), more.end());
  return values;
}

}  // namespace

MysqlDatabase::MysqlDatabase(std::shared_ptr<const Place> place, Method method)
    : place_(std::move(place)),
      method_(method),
      with_session_locks_(joined(values_of(*place_, method), session_locks())),
      without_session_locks_(joined(values_of(*place_, method), no_session_locks())) {}

const sql::Texts& MysqlDatabase::texts() const { return kTexts; }

std::string MysqlDatabase::literal(std::string_view bytes) const { return mysql::literal(bytes); }

std::string MysqlDatabase::instant(std::string_view text) const {
  return "CAST(" + mysql::literal(text) + " AS DATETIME(6))";
}

std::string MysqlDatabase::own_name(std::string_view owner) const {
  return session_lock(kOwn, owner);
}

std::string MysqlDatabase::row_name(std::string_view owner) const {
  return session_lock(kRow, owner);
}

// Of two keys with one hash, the waiters of one wait for the gate of the other, too.
std::string MysqlDatabase::gate_name(std::string_view key) const {
  const std::string which = place_->database + '/' + place_->prefix + '/' +
                            std::to_string(static_cast<int>(method_)) + '/' + std::string(key);
  return mysql::literal(std::string(kGate) + in_hex(util::hash(which)));
}

Result<void> MysqlDatabase::check_tables(Part part, sql::Session& session, Deadline deadline,
                                         Cancel cancel) const {
  const Tables tables(place_->prefix);
  std::vector<const Table*> needed{&tables.records};
  if (part == Part::locks) needed = {&tables.keys, &tables.locks};
  if (part == Part::locks && locks_rows()) needed.push_back(&tables.rows);
  for (const Table* table : needed) {
    if (auto ok = check_table(session, *place_, *table, deadline, cancel); !ok) return ok;
  }
  return {};
}

Result<std::unique_ptr<sql::Session>> MysqlDatabase::open(Deadline deadline, Cancel cancel) const {
  auto connection = Connection::open(place_, deadline, cancel);
  if (!connection) return connection.error();
  if (has_copies() && method_ != Method::version) {
    return Error{
        Errc::unsupported,
        connection.value()->server() +
            ": is one of several servers that take writes (Galera, or a replication group "
            "with several primaries), where a lock of this backend is known to one of them "
            "only; use mysql-version"};
  }
  return std::unique_ptr<sql::Session>(std::move(*connection));
}

}  // namespace dlock::mysql
