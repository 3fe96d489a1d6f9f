// Names.    A session lock is an advisory lock with a key of 64 bits, of this database.  That of an
//           owner is the first 64 bits of its random id, which a text can compute from a row, too.
// Alive.    A session is there if its name cannot be had, not even shared and for a moment.  What
//           pg_locks tells would do, but takes longer the more clients wait.  To its own session a
//           name seems to be free.
// Twice.    A session lock that is taken twice must be released twice.  So a text is told what the
//           session has.
#include "backends/postgres/database.hpp"

#include <algorithm>

#include "backends/postgres/connection.hpp"
#include "backends/postgres/text.hpp"
#include "backends/postgres/texts.hpp"
#include "util/hash.hpp"

namespace dlock::postgres {
namespace {

std::string number(std::uint64_t bits) { return std::to_string(static_cast<std::int64_t>(bits)); }

std::string is_free(const std::string& name) {
  return "(CASE WHEN pg_try_advisory_lock_shared(" + name + ") THEN pg_advisory_unlock_shared(" +
         name + ") ELSE FALSE END)";
}

// What pg_advisory_lock() is given.
std::string advisory_lock(const std::string& word) {
  if (word == "hash") return "hashtext({key})";
  if (word.find(',') != std::string::npos) return word;
  return '\'' + word + "'::bigint";
}

sql::Texts texts_of(const Place& place) {
  sql::Texts out = kTexts;
  if (!place.advisory.empty()) out.lock_row = out.lock_advisory;
  return out;
}

sql::Values values_of(const Place& place, Method method) {
  const Tables tables(place.prefix);
  const std::string the_method = '\'' + std::string(method_name(method)) + '\'';
  return {
      {"keys", tables.keys.name},
      {"locks", tables.locks.name},
      {"rows", tables.rows.name},
      {"records", tables.records.name},
      {"method", the_method},
      {"all_methods", "'all'"},
      {"now", "statement_timestamp()"},
      {"now_ms", kNowMs},
      {"written_ms", "floor(extract(epoch FROM written_at) * 1000)::bigint"},
      {"writable", kWritable},
      {"expiry", "{now} + INTERVAL '{ttl} microseconds'"},
      {"reason_expiry", "{now} + INTERVAL '{kept} microseconds'"},
      {"columns",
       "owner, role, name, mode, slots, slot, fence,"
       " (extract(epoch FROM {now} - since) * 1000000)::bigint,"
       " (extract(epoch FROM expires_at - {now}) * 1000000)::bigint, expires_at,"
       " CASE WHEN {is_gone} THEN NULL ELSE 1 END, record"},
      {"is_gone", is_free("('x' || left(owner, 16))::bit(64)::bigint")},
      {"holder_is_gone", is_free("{holder}")},
      {"take_own", "CASE WHEN {has_name} THEN 1 ELSE pg_try_advisory_lock({own})::int END"},
      {"release_own", "CASE WHEN {has_name} THEN pg_advisory_unlock({own})::int END"},
      {"take_gate", "CASE WHEN {has_gate} THEN 1 ELSE pg_try_advisory_lock({gate})::int END"},
      {"release_gate", "CASE WHEN {has_gate} THEN pg_advisory_unlock({gate})::int END"},
      {"is_ours", "(expires_at > {now} OR {has_name})"},
      {"is_there", "(expires_at IS NULL OR expires_at > {now} OR NOT " + is_free("{own}") + ")"},
      {"session_locks",
       "(SELECT pid, (classid::bigint << 32) | objid::bigint AS name FROM pg_locks"
       " WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND mode = 'ExclusiveLock'"
       " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS held"},
      {"session_lock", "name"},
      {"other_session",
       "(SELECT pid FROM {session_locks} WHERE {session_lock} = {own}"
       " AND pid <> pg_backend_pid() LIMIT 1)"},
      {"row_session", method == Method::row
                          ? "(SELECT pid FROM {session_locks} WHERE {session_lock} = {row} LIMIT 1)"
                          : "NULL"},
      {"has_row_session", method == Method::row ? "(NOT " + is_free("{row}") + ")::int" : "NULL"},
      {"take_row", "pg_try_advisory_lock({row})"},
      // No limit, where the server notices that a client has gone.
      {"row_patience",
       "CASE current_setting('client_connection_check_interval') WHEN '0' THEN '10s' ELSE '0' END"},
      {"row_patience_once", "'1s'"},
      {"row_silence",
       "set_config('idle_session_timeout', '{silence}s', false),"
       " set_config('idle_in_transaction_session_timeout', '{silence}s', false)"},
      {"keep_row", "SELECT {row_silence}"},
      {"advisory", advisory_lock(place.advisory)},
      {"for_update", place.advisory.empty() ? "FOR UPDATE" : "pg_advisory_lock"},
      {"for_share", place.advisory.empty() ? "FOR SHARE" : "pg_advisory_lock_shared"},
      {"free_row", "ROLLBACK; SELECT pg_advisory_unlock_all()"},
      {"risk", "CASE WHEN current_setting('fsync') = 'off' THEN 'fsync=off' END"},
  };
}

}  // namespace

PostgresDatabase::PostgresDatabase(std::shared_ptr<const Place> place, Method method)
    : place_(std::move(place)),
      method_(method),
      texts_(texts_of(*place_)),
      common_(values_of(*place_, method)) {}

std::string PostgresDatabase::foreign_lock() const {
  if (place_->advisory == "hash") return "has the advisory lock hashtext(KEY)";
  if (!place_->advisory.empty()) return "has the advisory lock " + place_->advisory;
  return "has locked its row in " + Tables(place_->prefix).rows.name + ", or that table";
}

std::string PostgresDatabase::literal(std::string_view bytes) const {
  return postgres::literal(bytes);
}

std::string PostgresDatabase::instant(std::string_view text) const {
  return postgres::literal(text) + "::timestamptz";
}

// As in {is_gone}.
std::string PostgresDatabase::own_name(std::string_view owner) const {
  constexpr std::size_t kDigits = 16;
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < kDigits; ++i) {
    const char c = i < owner.size() ? owner[i] : '0';
    const bool is_digit = c >= '0' && c <= '9';
    const bool is_letter = c >= 'a' && c <= 'f';
    if (!is_digit && !is_letter) return number(util::hash(owner));  // of no row: see kLocks
    bits = bits << 4U | static_cast<unsigned>(is_digit ? c - '0' : c - 'a' + 10);
  }
  return number(bits);
}

std::string PostgresDatabase::row_name(std::string_view owner) const {
  return number(util::hash("dlock row " + std::string(owner)));
}

// Of two keys with one hash, the waiters of one wait for the gate of the other, too.
std::string PostgresDatabase::gate_name(std::string_view key) const {
  return number(util::hash("dlock gate " + place_->prefix + '/' +
                           std::string(method_name(method_)) + '/' + std::string(key)));
}

Result<void> PostgresDatabase::check_tables(Part part, sql::Session& session, Deadline deadline,
                                            Cancel cancel) const {
  const Tables tables(place_->prefix);
  std::vector<const Table*> needed{&tables.records};
  if (part == Part::locks) needed = {&tables.keys, &tables.locks};
  if (part == Part::locks && locks_rows()) needed.push_back(&tables.rows);
  return postgres::check_tables(session, *place_, needed, deadline, cancel);
}

Result<std::unique_ptr<sql::Session>> PostgresDatabase::open(Deadline deadline,
                                                             Cancel cancel) const {
  auto connection = Connection::open(place_, deadline, cancel);
  if (!connection) return connection.error();
  return std::unique_ptr<sql::Session>(std::move(*connection));
}

}  // namespace dlock::postgres
